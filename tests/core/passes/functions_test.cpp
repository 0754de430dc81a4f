#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/passes/pass.h"
#include "tests/core/error_of.h"
#include "tests/core/other_limits.h"

namespace graft::passes {
namespace {

using ::testing::HasSubstr;
using testing::OtherLimits;

ValueType f32(const Shape& shape) {
  return {DType::f32, SymShape(shape)};
}

/// my.scaled(x) = LeakyRelu<alpha = @slope>(x), slope 0.5 by default.
Function scaled() {
  Function function{.domain = "my", .name = "scaled", .attributes = {"slope"}};
  function.attribute_defaults.emplace_back("slope", 0.5F);
  function.opset_imports = {{"", 17}};
  function.body = std::make_unique<Graph>("scaled");
  Graph& body = *function.body;
  Attribute alpha("alpha", AttributeValue());
  alpha.reference = "slope";
  Value* const x = body.add_input("x", {});
  body.add_output(body.add_node("LeakyRelu", "", {x}, {"y"}, {alpha})->output());
  return function;
}

Model calling(std::string_view op) {
  Model model;
  model.set_opset("", 21);
  model.set_opset("my", 1);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({2}));
  graph.add_output(graph.add_node(op, "my", {x}, {"y"})->output());
  return model;
}

TEST(Functions, CallsBecomeTheBodyWithTheCallsAttributes) {
  Model model = calling("scaled");
  model.functions.push_back(scaled());
  Graph& graph = model.graph();
  Node* const second = graph.add_node("scaled", "my", {graph.find("y")}, {"z"}, {{"slope", 0.25F}});
  second->set_name("again");
  graph.add_output(second->output());
  upgrade_opset(model);
  infer_shapes(graph);
  verify(graph);
  EXPECT_EQ(print(graph), R"(graph(x: f32[2]) -> (y: f32[2], z: f32[2])
  y: f32[2] = LeakyRelu(x) {alpha = 0.5}
  z: f32[2] = LeakyRelu(y) {alpha = 0.25}
)");
}

/// The function is written in opset 11, where ReduceSum's axes are an attribute, and the model in
/// opset 21, where that attribute would be unknown.
TEST(Functions, BodiesAreUpgradedFromTheirOwnOpset) {
  Model model = calling("total");
  Function function{.domain = "my", .name = "total"};
  function.opset_imports = {{"", 11}};
  function.body = std::make_unique<Graph>("total");
  Graph& body = *function.body;
  Value* const x = body.add_input("x", {});
  body.add_output(body.add_node("ReduceSum", "", {x}, {"y"},
                                {{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}})
                      ->output());
  model.functions.push_back(std::move(function));
  upgrade_opset(model);
  const Node& sum = *model.graph().outputs()[0]->producer();
  EXPECT_FALSE(sum.attributes.has("axes"));
  EXPECT_EQ(to_int64(sum.input(1)->initializer()), std::vector<std::int64_t>{0});
}

TEST(Functions, ReferencesInsideBodiesOfNodesAreResolved) {
  Model model = calling("chosen");
  Function function{.domain = "my", .name = "chosen", .attributes = {"slope"}};
  function.opset_imports = {{"", 21}};
  function.attribute_defaults.emplace_back("slope", 0.5F);
  function.body = std::make_unique<Graph>("chosen");
  Graph& body = *function.body;
  Value* const x = body.add_input("x", {});
  Value* const yes = body.add_initializer("yes", Tensor::scalar(true));
  std::vector<std::shared_ptr<Graph>> branches;
  for (const char* name : {"then", "else"}) {
    auto branch = std::make_shared<Graph>(name, &body);
    Attribute alpha("alpha", AttributeValue());
    alpha.reference = "slope";
    branch->add_output(
        branch->add_node("LeakyRelu", "", {x}, {text(name, "_y")}, {alpha})->output());
    branches.push_back(branch);
  }
  body.add_output(body.add_node("If", "", {yes}, {"y"},
                                {{"then_branch", AttributeValue(branches[0])},
                                 {"else_branch", AttributeValue(branches[1])}})
                      ->output());
  model.functions.push_back(std::move(function));
  upgrade_opset(model);
  settle(model.graph());
  EXPECT_EQ(print(model.graph()), R"(graph(x: f32[2]) -> (y: f32[2])
  y: f32[2] = LeakyRelu(x) {alpha = 0.5}
)");
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  Model model = calling("endless");
  Function function{.domain = "my", .name = "endless"};
  function.body = std::make_unique<Graph>("endless");
  Value* const x = function.body->add_input("x", {});
  function.body->add_output(function.body->add_node("endless", "my", {x}, {"y"})->output());
  model.functions.push_back(std::move(function));
  const Error error = error_of([&] { upgrade_opset(model); });
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_THAT(error.what(), HasSubstr("deeper than"));
}

/// my.f0(x) = Relu(x), and each of the next calls the one before twice.
Model doubling(int levels) {
  Model model = calling("f" + std::to_string(levels - 1));
  for (int level = 0; level < levels; ++level) {
    Function function{.domain = "my", .name = "f" + std::to_string(level)};
    function.body = std::make_unique<Graph>(function.name);
    Value* x = function.body->add_input("x", {});
    if (level == 0) {
      x = function.body->add_node("Relu", "", {x}, {"y"})->output();
    } else {
      const std::string callee = "f" + std::to_string(level - 1);
      x = function.body->add_node(callee, "my", {x}, {"y"})->output();
      x = function.body->add_node(callee, "my", {x}, {"z"})->output();
    }
    function.body->add_output(x);
    model.functions.push_back(std::move(function));
  }
  return model;
}

/// Bodies of 1, 2, 4 and 8 nodes are spliced 8, 4, 2 times and once; the file has 8 nodes.
TEST(Functions, InlinedNodesHaveALimit) {
  const OtherLimits enough({.inlined_nodes = 8, .inlined_share = 3});
  Model model = doubling(4);
  EXPECT_NO_THROW(upgrade_opset(model));
  EXPECT_EQ(model.graph().node_count(), 8U);
  const OtherLimits few({.inlined_nodes = 7, .inlined_share = 3});
  Model same = doubling(4);
  const Error error = error_of([&] { upgrade_opset(same); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("the limit is 31; --allow nodes=NUMBER raises it"));
}

TEST(Functions, CallsWithinCallsHaveALimit) {
  const OtherLimits enough({.call_depth = 5});
  Model model = doubling(5);
  EXPECT_NO_THROW(upgrade_opset(model));
  const OtherLimits few({.call_depth = 4});
  Model same = doubling(5);
  EXPECT_THAT(error_of([&] { upgrade_opset(same); }).what(), HasSubstr("--allow calls=NUMBER"));
}

TEST(Functions, UnknownOpsInThemAreListed) {
  Model model = calling("outer");
  Function function{.domain = "my", .name = "outer"};
  function.body = std::make_unique<Graph>("outer");
  Value* const x = function.body->add_input("x", {});
  function.body->add_output(function.body->add_node("Mystery", "", {x}, {"y"})->output());
  model.functions.push_back(std::move(function));
  EXPECT_THAT(error_of([&] { upgrade_opset(model); }).what(), HasSubstr("Mystery"));
}

}  // namespace
}  // namespace graft::passes
