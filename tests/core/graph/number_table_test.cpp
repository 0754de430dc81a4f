#include "core/graph/number_table.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(NumberTable, HasAnEntryForWhatTheGraphHasAndForWhatComesLater) {
  Graph graph("g");
  const Value* const x = graph.add_input("x", {});
  const Node* const node = graph.add_node("Relu", "", {graph.find("x")}, {"y"});
  ValueTable<int> values(graph, -1);
  NodeTable<std::string> nodes(graph);
  values[*x] = 3;
  nodes[*node] = "relu";
  Value* const later = graph.add_input("later", {});
  const Node* const last = graph.add_node("Neg", "", {later}, {"z"});
  const ValueTable<int> copy = values;
  EXPECT_EQ(copy[*x], 3);
  EXPECT_EQ(copy[*node->output(0)], -1);
  EXPECT_EQ(copy[*last->output(0)], -1) << "it came behind the table";
  values[*last->output(0)] = 5;
  EXPECT_EQ(values[*last->output(0)], 5);
  EXPECT_EQ(values[*later], -1);
  nodes[*last] = "neg";
  EXPECT_EQ(nodes[*node] + nodes[*last], "reluneg");
}

TEST(NumberTable, NobodyGetsTheNumberOfOneThatIsGone) {
  Graph graph("g");
  Node* const gone = graph.add_node("Relu", "", {graph.add_input("x", {})}, {"y"});
  const std::uint32_t node = gone->number();
  const std::uint32_t value = gone->output(0)->number();
  ValueTable<int> table(graph);
  table[*gone->output(0)] = 7;
  graph.remove(gone);
  const Node* const made = graph.add_node("Relu", "", {graph.find("x")}, {"y"});
  EXPECT_NE(made->number(), node);
  EXPECT_NE(made->output(0)->number(), value);
  EXPECT_EQ(table[*made->output(0)], 0);
  EXPECT_EQ(graph.numbered<Node>(), 2U);
  EXPECT_EQ(graph.numbered<Value>(), 3U);
}

TEST(NumberTable, ACopyOfAGraphNumbersAnew) {
  Graph graph("g");
  graph.remove(graph.add_node("Neg", "", {graph.add_input("x", {})}, {"y"}));
  graph.add_node("Relu", "", {graph.find("x")}, {"y"});
  const std::unique_ptr<Graph> copy = graph.clone();
  EXPECT_EQ(copy->numbered<Node>(), 1U);
  EXPECT_EQ(copy->numbered<Value>(), 2U);
}

}  // namespace
}  // namespace graft
