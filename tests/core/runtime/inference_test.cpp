#include "core/runtime/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "core/runtime/session.h"

namespace graft {
namespace {

/// Numbers between -1 and 1 that repeat late.
Tensor numbers(const Shape& shape) {
  Tensor tensor = Tensor::empty(DType::f32, shape);
  float next = 0.1F;
  for (float& value : tensor.values<float>()) {
    value = next;
    next = next > 0.5F ? next - 1.3F : next + 0.37F;
  }
  return tensor;
}

using Build = std::function<Expr(Builder&, const Expr&)>;

/// What a Session makes of a model of one input.
struct Case {
  Case(const Shape& shape, const Build& build) {
    model.set_opset("", kNewestOpset);
    Graph& graph = model.graph();
    type = {DType::f32, SymShape(shape)};
    Builder builder(graph);
    graph.add_output(build(builder, builder.expr(graph.add_input("x", type))).value());
  }

  std::set<std::string> ops() const {
    const auto graph = inference_graph(inference_form(model).graph(), {type}, cpu());
    std::set<std::string> names;
    for (const auto& node : graph->nodes()) names.insert(std::string(node->op_type()));
    return names;
  }

  /// The largest difference between what a Session answers and what the nodes as they are do.
  double difference() const {
    const Tensor x = numbers(*type.shape->known());
    Plan plain(model.graph().clone());
    plain.run(std::vector{x});
    const std::vector<double> wanted = to_double(plain.output(0));
    const std::vector<double> found = to_double(Session(model).run({x}).front());
    double most = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      most = std::max(most, std::abs(found.at(i) - wanted[i]));
    }
    return most;
  }

  Model model;
  ValueType type;
};

Expr weight(Builder& builder, const Shape& shape) {
  return builder.expr(builder.graph().add_initializer("", numbers(shape)));
}

/// x (1 + erf(x / sqrt(2))) / 2
Expr gelu(const Expr& x) {
  return x * (call("Erf", {x / 1.4142135623730951}) + 1.0) * 0.5;
}

TEST(Inference, SpelledOutActivationsAreOneNode) {
  const Case model({4, 6}, [](Builder&, const Expr& x) { return gelu(x); });
  EXPECT_EQ(model.ops(), std::set<std::string>{"Gelu"});
  EXPECT_LT(model.difference(), 1e-6);
}

TEST(Inference, TwoProductsWithAnActivationBetweenThemAreOneNode) {
  const Case model({2, 128, 32}, [](Builder& b, const Expr& x) {
    const Expr hidden = matmul(x, weight(b, {32, 64})) + weight(b, {64});
    return matmul(gelu(hidden), weight(b, {64, 32})) + weight(b, {32});
  });
  EXPECT_EQ(model.ops(), std::set<std::string>{"FeedForward"});
  EXPECT_LT(model.difference(), 1e-4);
}

TEST(Inference, AConvolutionClampsInFrontOfAPool) {
  const Case model({1, 2, 6, 6}, [](Builder& b, const Expr& x) {
    const Expr image = call("Relu", {call("Conv", {x, weight(b, {3, 2, 3, 3})})});
    return call("MaxPool", {image}, {{"kernel_shape", std::vector<std::int64_t>{2, 2}}});
  });
  const auto graph = inference_graph(inference_form(model.model).graph(), {model.type}, cpu());
  std::vector<std::string> ops;
  for (const auto& node : graph->nodes()) ops.push_back(node->op_type());
  EXPECT_THAT(ops, testing::ElementsAre("ConvClamp", "MaxPool"));
  EXPECT_EQ(model.difference(), 0);
}

/// Rows that are transposed for an attention over the sequence, and back.
TEST(Inference, RowsNeedNotBeTransposedForAnAttention) {
  const Case model({3, 5, 8}, [](Builder& b, const Expr& x) {
    const auto swap = [](const Expr& e) { return transpose(e, {1, 0, 2}); };
    const Expr rows = matmul(swap(x), weight(b, {8, 24})) + weight(b, {24});  // [5,3,24]
    const Expr stack = transpose(reshape(rows, {5, 3, 3, 8}), {2, 0, 1, 3});
    const auto part = [&](std::int64_t i) {
      const Expr index = b.expr(b.graph().add_initializer("", Tensor::scalar(i)));
      const Expr one = reshape(call("Gather", {stack, index}, {{"axis", 0}}), {5, 6, 4});
      return reshape(swap(one), {3, 2, 5, 4});
    };
    const Expr scores = matmul(part(0) * 0.5, transpose_last(part(1)));
    const Expr mixed = matmul(call("Softmax", {scores}, {{"axis", -1}}), part(2));
    const Expr back = reshape(transpose(mixed, {2, 0, 1, 3}), {5, 3, 8});
    return swap(matmul(back, weight(b, {8, 8})) + weight(b, {8}));
  });
  const std::set<std::string> ops = model.ops();
  EXPECT_TRUE(ops.contains("TiledAttention"));
  EXPECT_FALSE(ops.contains("Transpose"));
  EXPECT_LT(model.difference(), 1e-5);
}

TEST(Inference, AGraphThatFitsNoRewriteStays) {
  const Case model({4}, [](Builder&, const Expr& x) { return call("Erf", {x}); });
  EXPECT_EQ(model.ops(), std::set<std::string>{"Erf"});
  EXPECT_EQ(model.difference(), 0);
}

}  // namespace
}  // namespace graft
