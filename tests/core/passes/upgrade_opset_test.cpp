#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "tests/core/error_of.h"

namespace graft::passes {
namespace {

using testing::HasSubstr;

ValueType f32(const Shape& shape) {
  return {DType::f32, SymShape(shape)};
}

/// ReduceSum's axes and Clip's bounds were attributes once; weights may stand in Constant nodes.
TEST(UpgradeOpset, OldFormsBecomeTheNewest) {
  Model model;
  model.set_opset("", 9);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({2, 3}));
  Node* const constant =
      graph.add_node("Constant", "", {}, {"w"}, {{"value", Tensor::scalar(2.0F)}});
  Node* const clip = graph.add_node("Clip", "", {x}, {"c"},
                                    {{"min", AttributeValue(0.0F)}, {"max", AttributeValue(6.0F)}});
  Node* const product = graph.add_node("Mul", "", {clip->output(), constant->output()}, {"m"});
  Node* const sum = graph.add_node("ReduceSum", "", {product->output()}, {"s"},
                                   {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 0}});
  graph.add_output(sum->output());
  upgrade_opset(model);
  EXPECT_EQ(model.opset(), kNewestOpset);
  EXPECT_TRUE(graph.find("w")->is_initializer());
  Node* const new_clip = graph.find("m")->producer()->input(0)->producer();
  EXPECT_TRUE(new_clip->is("Clip"));
  EXPECT_EQ(new_clip->input_count(), 3);
  EXPECT_FALSE(new_clip->attributes.has("min"));
  const Node* const new_sum = graph.outputs()[0]->producer();
  EXPECT_EQ(to_int64(new_sum->input(1)->initializer()), std::vector<std::int64_t>{1});
  EXPECT_FALSE(new_sum->attributes.has("axes"));
  EXPECT_EQ(graph.outputs()[0]->name(), "s") << "names of outputs stay";
}

/// Before opset 13 a Softmax flattens, so that its newest form ends in another node.
TEST(UpgradeOpset, OutputsKeepTheirNamesWhateverComputesThemNow) {
  Model model;
  model.set_opset("", 9);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({2, 3, 4}));
  Value* const scores =
      graph.add_node("Softmax", "", {x}, {"scores"}, {{"axis", AttributeValue(2L)}})->output();
  Value* const same = graph.add_node("Dropout", "", {scores}, {"kept"})->output();
  graph.set_outputs({same, scores, x});
  upgrade_opset(model);
  verify(model.graph());
  std::vector<std::string> names;
  for (const Value* output : graph.outputs()) names.push_back(output->name());
  EXPECT_EQ(names, (std::vector<std::string>{"kept", "scores", "x"}));
}

TEST(UpgradeOpset, UnknownOpsAreListedAllAtOnce) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({2}));
  Node* const a = graph.add_node("Mystery", "", {x}, {"a"});
  a->set_name("first");
  graph.add_output(graph.add_node("Riddle", "my.domain", {a->output()}, {"b"})->output());
  const Error error = error_of([&] { upgrade_opset(model); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("Mystery (Mystery node 'first')"));
  EXPECT_THAT(error.what(), HasSubstr("my.domain.Riddle (Riddle node producing 'b')"));
}

}  // namespace
}  // namespace graft::passes
