#include "core/layers/append.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

/// A classifier as an old file holds it: opset 8, no types of computed values.
Model old_classifier() {
  Model model = model_of(
      {Dim("batch"), 1, 4, 4},
      {Conv{.name = "conv", .out = 2, .bias = false}, Relu{.name = "act"}, Dropout{.name = "drop"},
       MaxPool{.name = "pool"}, Flatten{.name = "flat"}, Linear{.name = "fc", .out = 3}},
      8);
  for (const auto& node : model.graph().nodes()) node->output()->set_type({});
  return model;
}

TEST(Append, ReplacesTheHeadOfATruncatedModel) {
  Model model = old_classifier();
  edit::truncate(model, "pool");
  edit::append(model, {Flatten{}, Linear{.name = "head", .out = 5, .seed = 1}, Dropout{}});
  EXPECT_EQ(print(model), R"(opset ai.onnx 8
net(x: f32[batch,1,4,4]) -> (dropout1: f32[batch,5])
  conv.weight: f32[2,1,3,3] = initializer
  head.weight: f32[5,2] = initializer
  head.bias: f32[5] = initializer
  conv: ? = Conv(x, conv.weight) {kernel_shape = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], group = 1}
  act: ? = Relu(conv)
  drop: ? = Dropout(act) {ratio = 0.5}
  pool: f32[batch,2,1,1] = MaxPool(drop) {kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0]}
  flatten1: f32[batch,2] = Flatten(pool) {axis = 1}
  head: f32[batch,5] = Gemm(flatten1, head.weight, head.bias) {transB = 1}
  dropout1: f32[batch,5] = Dropout(head) {ratio = 0.5}
)");
  verify(model);
  EXPECT_EQ(model.opset(), 8);
}

TEST(Append, TrustsARecordedTypeWhereAnOpIsUnknown) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {.dtype = DType::f32, .shape = SymShape{Dim("N"), 4}});
  Node* const node = graph.add_node("Mystery", "com.example", {x}, {"y"});
  graph.add_output(node->output());
  EXPECT_EQ(kind_of([&] { edit::append(model, {Linear{.out = 2}}); }), ErrorKind::unsupported);
  node->output()->set_type({.dtype = DType::f32, .shape = SymShape{Dim("N"), 3}});
  edit::append(model, {Linear{.out = 2}});
  EXPECT_EQ(graph.find("linear1.weight")->known_shape(), (Shape{2, 3}));
}

TEST(Append, GoesOnFromTheOutputNamed) {
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "a", .out = 3}});
  Graph& graph = model.graph();
  LayerContext context(graph, 17);
  graph.add_output(add_layer(context, Linear{.name = "b", .out = 2}, graph.find("a")));
  edit::append(model, {Relu{.name = "r"}}, {.after = "a"});
  ASSERT_EQ(graph.outputs().size(), 2U);
  EXPECT_EQ(graph.outputs()[0]->name(), "r");
  EXPECT_EQ(graph.outputs()[1]->name(), "b");
  EXPECT_TRUE(graph.preserved_of(graph.find("a")).in_value_info);
  verify(model);

  EXPECT_THAT(error_of([&] { edit::append(model, {Relu{}}); }).what(),
              HasSubstr("the model has 2 outputs; name one of them: 'r', 'b'"));
  EXPECT_THAT(error_of([&] { edit::append(model, {Relu{}}, {.after = "c"}); }).what(),
              HasSubstr("append: no value or node is named 'c'"));
}

TEST(Append, BehindAValueWithinAddsAnOutput) {
  Model model =
      model_of({Dim("N"), 4}, {Linear{.name = "a", .out = 3}, Linear{.name = "b", .out = 2}});
  model.graph().find("a")->set_type({});
  edit::append(model, {Linear{.name = "extra", .out = 5}}, {.after = "a"});
  ASSERT_EQ(model.graph().outputs().size(), 2U);
  EXPECT_EQ(model.graph().outputs()[0]->name(), "b");
  EXPECT_EQ(model.graph().outputs()[1]->type(), (ValueType{DType::f32, SymShape{Dim("N"), 5}}));
  verify(model);
}

TEST(Append, InitializesLayersThatDoNotSayHow) {
  Model model = model_of({Dim("N"), 4}, {Relu{}});
  edit::append(model,
               {Linear{.name = "a", .out = 2},
                Linear{.name = "b", .out = 2, .init = Init{.kind = Init::constant, .value = 1}}},
               {.init = Init{.kind = Init::constant, .value = 2}});
  EXPECT_EQ(to_double(model.graph().find("a.weight")->initializer()), std::vector<double>(8, 2));
  EXPECT_EQ(to_double(model.graph().find("b.weight")->initializer()), std::vector<double>(4, 1));
  EXPECT_EQ(to_double(model.graph().find("a.bias")->initializer()), std::vector<double>(2, 0));
}

/// x -> a -> r -> b, where r reads a, and twice, also as an output.
Model readers() {
  Model model = model_of({Dim("N"), 2}, {Linear{.name = "a", .out = 2}, Relu{.name = "r"},
                                         Linear{.name = "b", .out = 2}});
  Graph& graph = model.graph();
  graph.add_output(graph.add_node("Neg", "", {graph.find("a")}, {"n"})->output());
  graph.add_output(graph.find("a"));
  return model;
}

TEST(Insert, AfterAValueServesAllItsReaders) {
  Model model = readers();
  edit::insert(model, {Tanh{.name = "t"}, Sigmoid{.name = "s"}}, {.after = "a"});
  const Graph& graph = model.graph();
  EXPECT_EQ(graph.find("t")->producer()->input(0)->name(), "a");
  EXPECT_EQ(graph.find("r")->producer()->input(0)->name(), "s");
  EXPECT_EQ(graph.find("n")->producer()->input(0)->name(), "s");
  EXPECT_EQ(graph.outputs()[2]->name(), "s");
  EXPECT_TRUE(graph.preserved_of(graph.find("a")).in_value_info);
  verify(model);
}

TEST(Insert, BeforeANodeServesThatAlone) {
  Model model = readers();
  edit::insert(model, {Tanh{.name = "t"}}, {.before = "r"});
  const Graph& graph = model.graph();
  EXPECT_EQ(graph.find("r")->producer()->input(0)->name(), "t");
  EXPECT_EQ(graph.find("n")->producer()->input(0)->name(), "a");
  verify(model);
}

TEST(Insert, BehindAnInputStandsFirst) {
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "a", .out = 2}});
  edit::insert(model, {Linear{.name = "in", .out = 4}, Relu{.name = "act"}}, {.after = "x"});
  EXPECT_EQ(model.graph().find("a")->producer()->input(0)->name(), "act");
  verify(model);
}

TEST(Insert, TypesBehindItFollow) {
  Model model = model_of({Dim("N"), 2, 8, 8}, {Conv{.name = "c", .out = 2, .kernel = {1}},
                                               Relu{.name = "r"}, GlobalAveragePool{.name = "g"}});
  edit::insert(model, {MaxPool{.name = "pool"}}, {.after = "c"});
  EXPECT_EQ(model.graph().find("r")->shape(), (SymShape{Dim("N"), 2, 4, 4}));
  EXPECT_EQ(model.graph().find("g")->shape(), (SymShape{Dim("N"), 2, 1, 1}));
}

TEST(Insert, RefusesWhatDoesNotFit) {
  Model model = readers();
  const std::string before = print(model);
  const auto insert = [&](const std::vector<Layer>& layers, const edit::InsertOptions& options) {
    const Error error = error_of([&] { edit::insert(model, layers, options); });
    EXPECT_EQ(print(model), before);
    return std::string(error.what());
  };
  EXPECT_THAT(insert({Linear{.name = "i", .out = 3}}, {.before = "b"}), HasSubstr("'b'"));
  EXPECT_THAT(insert({Relu{}}, {.before = "x"}), HasSubstr("no node computes 'x'"));
  EXPECT_THAT(insert({Relu{}}, {.after = "a.weight"}), HasSubstr("is an initializer"));
  EXPECT_THAT(insert({Relu{}}, {}), HasSubstr("wanted one place"));
  EXPECT_THAT(insert({Relu{}}, {.after = "a", .before = "b"}), HasSubstr("wanted one place"));
  EXPECT_THAT(insert({}, {.after = "a"}), HasSubstr("no layer is given"));
}

TEST(Append, SeedsLayersThatNameNone) {
  const auto weight = [](std::uint64_t seed, const Linear& layer) {
    Model model = model_of({Dim("N"), 4}, {Relu{}});
    edit::append(model, {layer}, {.seed = seed});
    return model.graph().find("linear1.weight")->initializer();
  };
  EXPECT_TRUE(equal_bits(weight(3, {.out = 2}), weight(4, {.out = 2, .seed = 3})));
  EXPECT_FALSE(equal_bits(weight(3, {.out = 2}), weight(4, {.out = 2})));
}

TEST(Append, LeavesTheModelAsItWasWhenItThrows) {
  Model model = old_classifier();
  const std::string before = print(model, {.node_names = true});
  EXPECT_EQ(kind_of([&] {
              edit::append(model, {Linear{.out = 4}, Residual{.body = {Linear{.out = 1}}}});
            }),
            ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { edit::append(model, {}); }), ErrorKind::argument);
  EXPECT_EQ(print(model, {.node_names = true}), before);
  verify(model);
}

}  // namespace
}  // namespace graft
