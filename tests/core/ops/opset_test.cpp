#include "core/ops/opset.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(OldestOpset, IsThatOfTheNewestFormThatANodeNeeds) {
  Graph graph;
  EXPECT_EQ(oldest_opset(graph), 1);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{3}});
  Value* const i = graph.add_input("i", {DType::i64, SymShape{1, 1}});
  graph.add_node("Gather", "", {x, i}, {"g"});
  EXPECT_EQ(oldest_opset(graph), 11) << "13 brought types alone";
  graph.add_node("Unheard", "own", {x}, {"u"});
  EXPECT_EQ(oldest_opset(graph), 11);
  auto body = std::make_shared<Graph>("body", &graph);
  body->add_node("GatherND", "", {x, i}, {"n"});
  graph.add_node("If", "", {}, {"y"}, {{"then_branch", body}});
  EXPECT_EQ(oldest_opset(graph), 12) << "bodies count";
}

}  // namespace
}  // namespace graft
