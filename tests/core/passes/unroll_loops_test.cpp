#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/other_limits.h"

namespace graft::passes {
namespace {

using testing::OtherLimits;

ValueType f32(const Shape& shape) {
  return {DType::f32, SymShape(shape)};
}

/// state' = state * x, collected too.
std::shared_ptr<Graph> loop_body(Graph& outer, Value* x) {
  auto body = std::make_shared<Graph>("body", &outer);
  body->add_input("turn", {DType::i64, SymShape{}});
  Value* const condition = body->add_input("go", {DType::boolean, SymShape{}});
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  Value* const product = body->add_node("Mul", "", {state, x}, {"product"})->output();
  body->add_output(body->add_node("Identity", "", {condition}, {"go_on"})->output());
  body->add_output(product);
  body->add_output(product);
  return body;
}

std::unique_ptr<Graph> loop_graph(bool count_is_known) {
  auto graph = std::make_unique<Graph>();
  Value* const x = graph->add_input("x", f32({2}));
  Value* const turns = count_is_known
                           ? graph->add_initializer("turns", Tensor::scalar<std::int64_t>(2))
                           : graph->add_input("turns", {DType::i64, SymShape{}});
  Node* const loop = graph->add_node("Loop", "", {turns, nullptr, x}, {"last", "all"},
                                     {{"body", AttributeValue(loop_body(*graph, x))}});
  graph->add_output(loop->output(0));
  graph->add_output(loop->output(1));
  return graph;
}

TEST(UnrollLoops, CopiesTheBodyForEachTurn) {
  const auto graph = loop_graph(true);
  EXPECT_TRUE(unroll_loops(*graph));
  settle(*graph);
  EXPECT_EQ(print(*graph), R"(graph(x: f32[2]) -> (last: f32[2], all: f32[2,2])
  constant_3: i64[1] = {0}
  constant_4: i64[1] = {0}
  turn_0/product: f32[2] = Mul(x, x)
  last: f32[2] = Mul(turn_0/product, x)
  unsqueeze: f32[1,2] = Unsqueeze(turn_0/product, constant_3)
  unsqueeze_1: f32[1,2] = Unsqueeze(last, constant_4)
  all: f32[2,2] = Concat(unsqueeze, unsqueeze_1) {axis = 0}
)");
}

TEST(UnrollLoops, LeavesALoopWhoseLengthIsGivenLater) {
  const auto graph = loop_graph(false);
  EXPECT_FALSE(unroll_loops(*graph));
  EXPECT_EQ(graph->node_count(), 1);
}

TEST(UnrollLoops, LeavesALoopOfMillionsOfTurns) {
  const auto graph = loop_graph(true);
  graph->find("turns")->set_initializer(Tensor::scalar<std::int64_t>(1 << 24));
  EXPECT_FALSE(unroll_loops(*graph));
}

/// A turn makes two nodes, and what they are joined by is not counted.
TEST(UnrollLoops, TheLimitCanBeRaised) {
  const OtherLimits few({.unrolled_nodes = 6});
  EXPECT_FALSE(unroll_loops(*loop_graph(true)));
  const OtherLimits enough({.unrolled_nodes = 7});
  EXPECT_TRUE(unroll_loops(*loop_graph(true)));
}

/// A loop of 300 turns whose body is a loop of 300 turns.
TEST(UnrollLoops, LeavesLoopsWithinLoopsOfTooManyTurns) {
  const auto graph = loop_graph(true);
  graph->find("turns")->set_initializer(Tensor::scalar<std::int64_t>(300));
  Graph& outer =
      *std::get<std::shared_ptr<Graph>>(graph->nodes().front()->attributes.find("body")->value);
  Value* const state = outer.find("state");
  Node* const inner =
      outer.add_node("Loop", "", {graph->find("turns"), nullptr, state}, {"inner", "inner_all"},
                     {{"body", AttributeValue(loop_body(outer, state))}});
  outer.set_outputs({outer.outputs()[0], inner->output(0), inner->output(0)});
  while (unroll_loops(*graph)) settle(*graph);
  constexpr std::size_t kMost = 20'000;
  EXPECT_LE(graph->node_count(), kMost);
  const auto is_loop = [](const auto& node) { return node->is("Loop"); };
  EXPECT_TRUE(std::ranges::any_of(graph->nodes(), is_loop));
}

/// y = running sums of x [2,3] over axis 1, from the back, written from the back.
TEST(UnrollLoops, ScansTakeEntriesByGather) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2, 3}));
  Value* const start = graph.add_initializer("start", Tensor::zeros(DType::f32, {2}));
  auto body = std::make_shared<Graph>("body", &graph);
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  Value* const one = body->add_input("one", {DType::f32, std::nullopt});
  Value* const sum = body->add_node("Add", "", {state, one}, {"sum"})->output();
  body->add_output(sum);
  body->add_output(sum);
  Node* const scan = graph.add_node("Scan", "", {start, x}, {"total", "sums"},
                                    {{"body", AttributeValue(body)},
                                     {"num_scan_inputs", 1},
                                     {"scan_input_axes", std::vector<std::int64_t>{1}},
                                     {"scan_input_directions", std::vector<std::int64_t>{1}},
                                     {"scan_output_axes", std::vector<std::int64_t>{1}},
                                     {"scan_output_directions", std::vector<std::int64_t>{1}}});
  graph.add_output(scan->output(0));
  graph.add_output(scan->output(1));
  EXPECT_TRUE(unroll_loops(graph));
  settle(graph);
  EXPECT_EQ(print(graph), R"(graph(x: f32[2,3]) -> (total: f32[2], sums: f32[2,3])
  start: f32[2] = initializer
  constant: i64[] = {2}
  constant_1: i64[] = {1}
  constant_2: i64[] = {0}
  constant_3: i64[1] = {1}
  constant_4: i64[1] = {1}
  constant_5: i64[1] = {1}
  gather: f32[2] = Gather(x, constant) {axis = 1}
  turn_0/sum: f32[2] = Add(start, gather)
  gather_1: f32[2] = Gather(x, constant_1) {axis = 1}
  turn_1/sum: f32[2] = Add(turn_0/sum, gather_1)
  gather_2: f32[2] = Gather(x, constant_2) {axis = 1}
  total: f32[2] = Add(turn_1/sum, gather_2)
  unsqueeze: f32[2,1] = Unsqueeze(total, constant_3)
  unsqueeze_1: f32[2,1] = Unsqueeze(turn_1/sum, constant_4)
  unsqueeze_2: f32[2,1] = Unsqueeze(turn_0/sum, constant_5)
  sums: f32[2,3] = Concat(unsqueeze, unsqueeze_1, unsqueeze_2) {axis = 1}
)");
}

}  // namespace
}  // namespace graft::passes
