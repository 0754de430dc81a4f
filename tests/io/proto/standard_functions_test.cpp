#include <gtest/gtest.h>

#include "core/passes/pass.h"
#include "io/onnx.h"

namespace graft::onnx {
namespace {

Model shrinking(std::int64_t opset) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{3}});
  graph.add_output(graph.add_node("Shrink", "", {x}, {"y"}, {{"bias", 0.25F}})->output());
  graph.outputs()[0]->set_type({DType::f32, SymShape{3}});
  return model;
}

/// Shrink's body refers to its attributes lambd and bias: lambd has a default in the schema only.
TEST(StandardFunctions, AreAttachedAndStayOutOfTheFile) {
  const std::string bytes = serialize(shrinking(18));
  Model model = parse(bytes);
  ASSERT_EQ(model.standard_functions.size(), 1);
  EXPECT_EQ(model.standard_functions[0].name, "Shrink");
  EXPECT_TRUE(model.functions.empty());
  EXPECT_EQ(serialize(model), bytes);
}

TEST(StandardFunctions, ServeOpsOfOlderOpsetsThanTheBody) {
  const Model model = parse(serialize(shrinking(10)));
  EXPECT_EQ(model.standard_functions.size(), 1);
}

TEST(StandardFunctions, OpsWithoutABodyHaveNone) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{3}});
  graph.add_output(graph.add_node("Sin", "", {x}, {"y"})->output());
  EXPECT_TRUE(parse(serialize(model)).standard_functions.empty());
}

}  // namespace
}  // namespace graft::onnx
