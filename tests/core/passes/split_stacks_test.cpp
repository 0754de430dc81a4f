#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// Takes `indices` of the axis that `order` moves to the front of x: [4, 2, 3, 5].
std::unique_ptr<Graph> make_graph(const std::vector<std::int64_t>& order,
                                  const std::vector<std::int64_t>& indices) {
  auto graph = std::make_unique<Graph>("net");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape(Shape{4, 2, 3, 5})}));
  const Expr stack = transpose(x, order);
  for (const std::int64_t index : indices) {
    const Expr at = builder.expr(builder.constant(Tensor::scalar(index), "at"));
    graph->add_output(call("Gather", {stack, at}, {{"axis", 0}}).value());
  }
  return graph;
}

TEST(SplitStacks, TensorsThatWereStackedAreSplit) {
  const auto graph = make_graph({2, 0, 1, 3}, {1, 0, 2});
  EXPECT_TRUE(passes::split_stacks(*graph));
  EXPECT_EQ(
      print(*graph),
      R"(net(x: f32[4,2,3,5]) -> (reshape_1: f32[4,2,5], reshape: f32[4,2,5], reshape_2: f32[4,2,5])
  constant: i64[3] = {4, 2, 5}
  constant_1: i64[3] = {4, 2, 5}
  constant_2: i64[3] = {4, 2, 5}
  split: f32[4,2,1,5], split_1: f32[4,2,1,5], split_2: f32[4,2,1,5] = Split(x) {axis = 2, num_outputs = 3}
  reshape: f32[4,2,5] = Reshape(split, constant) {allowzero = 1}
  reshape_1: f32[4,2,5] = Reshape(split_1, constant_1) {allowzero = 1}
  reshape_2: f32[4,2,5] = Reshape(split_2, constant_2) {allowzero = 1}
)");
  EXPECT_FALSE(passes::split_stacks(*graph));
}

TEST(SplitStacks, WhatIsNotTakenOnceInOrderStays) {
  EXPECT_FALSE(passes::split_stacks(*make_graph({2, 0, 1, 3}, {0, 1})));     // one is left
  EXPECT_FALSE(passes::split_stacks(*make_graph({2, 0, 1, 3}, {0, 1, 1})));  // one comes twice
  EXPECT_FALSE(passes::split_stacks(*make_graph({2, 0, 1, 3}, {0, 1, 2, 2})));
  EXPECT_FALSE(passes::split_stacks(*make_graph({2, 1, 0, 3}, {0, 1, 2})));  // others turn round
}

TEST(SplitStacks, AHugeStackCostsNothing) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::u8, SymShape{1, INT64_C(1) << 61}}));
  const Expr at = builder.expr(builder.constant(Tensor::scalar(std::int64_t{0}), "at"));
  graph.add_output(call("Gather", {transpose(x, {1, 0}), at}, {{"axis", 0}}).value());
  EXPECT_FALSE(passes::split_stacks(graph));
}

}  // namespace
}  // namespace graft
