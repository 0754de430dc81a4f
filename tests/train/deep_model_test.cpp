#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

/// Of `depth` nodes on [2,4]: x * w0, relu, x * w1, relu, ... with all weights 1.
Model deep_model(int depth) {
  Model model;
  model.set_opset("", kNewestOpset);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{2, 4})}));
  for (int i = 0; i < depth; i += 2) {
    x = x * builder.expr(builder.constant(Tensor::full(DType::f32, {4}, 1.0), "w"));
    x = call("Relu", {x});
  }
  graph.add_output(x.value());
  return model;
}

struct Trained {
  float loss;
  std::size_t arena_bytes;
};

Trained train_once(int depth) {
  Model model = deep_model(depth);
  EXPECT_EQ(model.graph().node_count(), static_cast<std::size_t>(depth));
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 1e-6F}});
  const Tensor x = Tensor::full(DType::f32, {2, 4}, 2.0);
  const Tensor target = Tensor::zeros(DType::f32, {2, 4});
  const float loss = step.run({x}, target);
  EXPECT_LT(step.run({x}, target), loss);
  return {loss, step.arena_bytes()};
}

TEST(DeepModel, TenThousandNodesTrainInMemoryThatGrowsAsTheDepth) {
  const Trained shallow = train_once(1000);
  const Trained deep = train_once(10000);
  EXPECT_EQ(shallow.loss, 4.0F) << "2 goes through unchanged";
  EXPECT_EQ(deep.loss, 4.0F);
  // What backward needs of each node, and no hole between.
  EXPECT_LE(deep.arena_bytes, 10 * shallow.arena_bytes);
}

}  // namespace
}  // namespace graft
