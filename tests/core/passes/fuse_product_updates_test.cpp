#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// An SgdUpdate of w [3,2] whose gradient is x^T dy.
struct Step {
  explicit Step(Attributes settings = {}) {
    const auto input = [&](const char* name, DType dtype, const Shape& shape) {
      return graph.add_input(name, {dtype, SymShape(shape)});
    };
    x = input("x", DType::f32, {4, 3});
    Value* const dy = input("dy", DType::f32, {4, 2});
    Value* const lr = input("lr", DType::f32, {});
    Value* const step = input("step", DType::i64, {});
    w = graph.add_initializer("w", Tensor::zeros(DType::f32, {3, 2}));
    w->is_variable = true;
    product = graph.add_node("Gemm", "", {x, dy}, {"dw"}, {{"transA", 1}});
    update = graph.add_node("SgdUpdate", kInternalDomain, {w, product->output(), lr, step},
                            {"w.new"}, std::move(settings));
    passes::infer_shapes(graph);
  }

  Graph graph{"step"};
  Value* x = nullptr;
  Value* w = nullptr;
  Node* product = nullptr;
  Node* update = nullptr;
};

TEST(FuseProductUpdates, TheProductAddsToTheParameter) {
  Step step;
  EXPECT_TRUE(passes::fuse_product_updates(step.graph));
  EXPECT_EQ(print(step.graph), R"(step(x: f32[4,3], dy: f32[4,2], lr: f32[], step: i64[]) -> ()
  w: f32[3,2] = variable
  sgdproductupdate: f32[3,2] = ai.graft.SgdProductUpdate(x, dy, w, lr) {transA = 1}
)");
  EXPECT_FALSE(passes::fuse_product_updates(step.graph));
}

TEST(FuseProductUpdates, AGradientThatIsAlsoReadElsewhereIsStored) {
  Step step;
  step.graph.add_output(step.product->output());
  EXPECT_FALSE(passes::fuse_product_updates(step.graph));
}

TEST(FuseProductUpdates, WeightDecayAndMomentumNeedTheGradient) {
  Step decaying({{"weight_decay", AttributeValue(0.1F)}});
  EXPECT_FALSE(passes::fuse_product_updates(decaying.graph));
  Step step;
  Value* const momentum = step.graph.add_initializer("m", Tensor::zeros(DType::f32, {3, 2}));
  step.update->set_input(4, momentum);
  EXPECT_FALSE(passes::fuse_product_updates(step.graph));
}

TEST(FuseProductUpdates, AProductOfAParameterRunsBeforeThatIsUpdated) {
  Step step;
  Value* const other = step.graph.add_initializer("other", Tensor::zeros(DType::f32, {4, 3}));
  other->is_variable = true;
  step.product->set_input(0, other);
  EXPECT_FALSE(passes::fuse_product_updates(step.graph));
}

}  // namespace
}  // namespace graft
