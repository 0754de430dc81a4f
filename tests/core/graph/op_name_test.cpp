#include "core/graph/op_name.h"

#include <gtest/gtest.h>

#include "core/graph/graph.h"

namespace graft {
namespace {

TEST(OpNames, OfOneOpAreOne) {
  OpNames names;
  const OpName& conv = names.of("Conv", "");
  const OpName& other = names.of("Conv", "com.example");
  for (int i = 0; i < 100; ++i) names.of("Op" + std::to_string(i), "");
  EXPECT_EQ(&names.of("Conv", ""), &conv);
  EXPECT_EQ(&names.of("Conv", "com.example"), &other);
  EXPECT_NE(&conv, &other);
  EXPECT_EQ(other.type + " " + other.domain, "Conv com.example");
}

TEST(OpNames, NodesOfAGraphShareThem) {
  Graph graph("g");
  Value* const x = graph.add_input("x", {});
  const Node* const first = graph.add_node("Relu", "ai.onnx", {x}, {"y"});
  const Node* const second = graph.add_node("Relu", "", {x}, {"z"});
  EXPECT_EQ(&first->op(), &second->op());
  EXPECT_TRUE(second->is("Relu"));
  const std::unique_ptr<Graph> copy = graph.clone();
  EXPECT_NE(&copy->nodes().front()->op(), &first->op()) << "each graph has its own";
}

}  // namespace
}  // namespace graft
