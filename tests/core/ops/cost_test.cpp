#include "core/ops/cost.h"

#include <gtest/gtest.h>

#include "core/ops/builder.h"

namespace graft {
namespace {

Value* input(Graph& graph, const Shape& shape) {
  return graph.add_input("", {DType::f32, SymShape(shape)});
}

/// 2 heads of 3 queries and 5 keys: 4 numbers a score, and 7 a value.
TEST(Cost, AttentionMeetsEachKeyTwiceAndItsGradientFiveTimes) {
  Graph graph;
  Builder builder(graph);
  Value* const q = input(graph, {2, 3, 4});
  Value* const k = input(graph, {2, 5, 4});
  Value* const v = input(graph, {2, 5, 7});
  const Node* const forward = builder.node("TiledAttention", kInternalDomain, {q, k, v}, 2);
  EXPECT_EQ(node_multiply_adds(*forward), 2 * 3 * 5 * (4 + 7));
  const Node* const backward =
      builder.node("TiledAttentionGrad", kInternalDomain,
                   {q, k, v, input(graph, {2, 3}), forward->output(1), input(graph, {2, 3, 7})}, 3);
  EXPECT_EQ(node_multiply_adds(*backward), 2 * 3 * 5 * (3 * 4 + 2 * 7));
}

TEST(Cost, FeedForwardMeetsEachWeightOnceAndItsGradientMeetsTheFirstThreeTimes) {
  Graph graph;
  Builder builder(graph);
  Value* const x = input(graph, {2, 3, 4});
  Value* const w1 = input(graph, {4, 10});
  Value* const w2 = input(graph, {10, 7});
  const Attributes attributes{{"activation", "Relu"}};
  const Node* const forward =
      builder.node("FeedForward", kInternalDomain, {x, w1, w2}, 1, attributes);
  EXPECT_EQ(node_multiply_adds(*forward), 6 * (4 * 10 + 10 * 7));
  const Node* const backward = builder.node("FeedForwardGrad", kInternalDomain,
                                            {x, w1, w2, forward->output()}, 3, attributes);
  EXPECT_EQ(node_multiply_adds(*backward), 6 * (3 * 4 * 10 + 2 * 10 * 7));
}

TEST(Cost, AnUpdateByAProductIsThatProduct) {
  Graph graph;
  Builder builder(graph);
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {3, 5}));
  w->is_variable = true;
  Value* const steps = graph.add_input("steps", {DType::i64, SymShape(Shape{})});
  const Node* const update = builder.node(
      "SgdProductUpdate", kInternalDomain,
      {w, input(graph, {7, 3}), input(graph, {}), steps, nullptr, input(graph, {7, 5})}, 1,
      {{"transA", 1}});
  EXPECT_EQ(node_multiply_adds(*update), 7 * 3 * 5);
}

TEST(Cost, OtherOpsHaveNoProducts) {
  Graph graph;
  Builder builder(graph);
  const Node* const relu = builder.node("Relu", "", {input(graph, {7, 3})}, 1);
  EXPECT_EQ(node_multiply_adds(*relu), 0);
  EXPECT_EQ(cost_in_bytes(*relu), 2.0 * 4 * 21);
}

}  // namespace
}  // namespace graft
