#include "core/layers/output_types.h"

#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

/// Whose values have no types but the output.
Model untyped() {
  Model model = model_of({Dim("batch"), 1, 4, 4},
                         {Conv{.name = "conv", .out = 2}, Relu{.name = "act"},
                          Flatten{.name = "flat"}, Linear{.name = "fc", .out = 3}},
                         17);
  for (Node* const node :
       {model.graph().find("conv")->producer(), model.graph().find("act")->producer()}) {
    node->output()->set_type({});
  }
  return model;
}

TEST(OutputTypes, AreFoundAfterACut) {
  Model model = untyped();
  edit::truncate(model, "act");
  edit::complete_output_types(model);
  const ValueType wanted{DType::f32, SymShape{Dim("batch"), 2, 2, 2}};
  EXPECT_EQ(model.graph().outputs().front()->type(), wanted)
      << model.graph().outputs().front()->type();
}

TEST(OutputTypes, OfAllValuesAreThoseOfTheFileAndOfInference) {
  Model model = untyped();
  model.graph().find("flat")->set_type({DType::f32, SymShape{Dim("rows"), Dim()}});
  const auto types = edit::value_types(model);
  EXPECT_EQ(types.at("act"), (ValueType{DType::f32, SymShape{Dim("batch"), 2, 2, 2}}));
  EXPECT_EQ(types.at("flat"), (ValueType{DType::f32, SymShape{Dim("rows"), 8}}));
  EXPECT_EQ(types.at("fc.bias"), (ValueType{DType::f32, SymShape{3}}));
  EXPECT_FALSE(model.graph().find("act")->shape()) << "the model itself must stay as it was";
}

TEST(OutputTypes, OfAllValuesAreWhatIsKnownWhereAnOpIsNot) {
  Model model = untyped();
  model.graph().add_node("Unheard", "", {model.graph().find("act")}, {"odd"});
  const auto types = edit::value_types(model);
  EXPECT_EQ(types.at("odd"), ValueType{});
  EXPECT_EQ(types.at("fc"), model.graph().find("fc")->type());
}

TEST(OutputTypes, WhatIsRecordedStays) {
  Model model = untyped();
  Value* const output = model.graph().outputs().front();
  output->set_type({DType::f32, SymShape{Dim("rows"), Dim()}});
  edit::complete_output_types(model);
  EXPECT_EQ(output->type(), (ValueType{DType::f32, SymShape{Dim("rows"), 3}})) << output->type();
}

/// [N,2,3] to the shape (N, -1), of which N is computed.
TEST(OutputTypes, AreFoundBehindAShapeThatIsComputedFromTheBatch) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2, 3}});
  const auto ints = [&](const char* name, std::int64_t number) {
    return graph.add_initializer(name, Tensor::from<std::int64_t>({1}, {number}));
  };
  Value* const shape = graph.add_node("Shape", "", {x}, {"shape"})->output();
  Value* const batch =
      graph.add_node("Slice", "", {shape, ints("zero", 0), ints("one", 1)}, {"batch"})->output();
  Value* const target =
      graph.add_node("Concat", "", {batch, ints("rest", -1)}, {"target"}, {{"axis", 0}})->output();
  Value* const y = graph.add_node("Reshape", "", {x, target}, {"y"})->output();
  graph.add_output(y);
  edit::complete_output_types(model);
  ASSERT_TRUE(y->shape() && y->shape()->rank() == 2) << y->type();
  EXPECT_EQ((*y->shape())[1], Dim(6)) << y->type();
}

TEST(OutputTypes, StayOpenBehindAnUnknownOp) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2}});
  Value* const y = graph.add_node("Mystery", "com.example", {x}, {"y"})->output();
  graph.add_output(y);
  edit::complete_output_types(model);
  EXPECT_EQ(y->dtype(), DType::undefined);
}

}  // namespace
}  // namespace graft
