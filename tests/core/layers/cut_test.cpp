#include "core/layers/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

/// x -> conv -> bn -> relu -> block (with a shortcut) -> flat -> fc1 -> act -> fc2 -> probs
Model classifier() {
  return model_of(
      {Dim("N"), 1, 4, 4},
      {Conv{.name = "conv", .out = 2}, BatchNorm{.name = "bn"}, Relu{.name = "relu"},
       Residual{.name = "block", .body = {Conv{.name = "block.conv", .out = 2, .padding = {1}}}},
       Flatten{.name = "flat"}, Linear{.name = "fc1", .out = 5}, Relu{.name = "act"},
       Linear{.name = "fc2", .out = 3}, Softmax{.name = "probs"}});
}

std::string cut(const std::string& where) {
  return edit::find_cut(classifier(), "truncate", where);
}

std::string refusal(const std::string& where) {
  const Model model = classifier();
  const Error error = error_of([&] { edit::find_cut(model, "truncate", where); });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  return error.what();
}

TEST(FindCut, TakesNamesOfValuesAndNodes) {
  EXPECT_EQ(cut("act"), "act");
  Model model = classifier();
  model.graph().find("act")->producer()->set_name("/head/act");
  EXPECT_EQ(edit::find_cut(model, "truncate", "/head/act"), "act");
}

TEST(FindCut, ANameIsNoPatternThoughItLooksLikeOne) {
  Model model = classifier();
  edit::rename(model, "act", "a[0]+");
  EXPECT_EQ(edit::find_cut(model, "truncate", "a[0]+"), "a[0]+");
}

TEST(FindCut, LastCountsLayersWithWeights) {
  EXPECT_EQ(cut("last:1"), "act");
  EXPECT_EQ(cut("last:2"), "flat");
  Model model = classifier();
  edit::truncate(model, edit::find_cut(model, "truncate", "last:2"));
  EXPECT_EQ(model.graph().find("fc1.weight"), nullptr);
  EXPECT_NE(model.graph().find("block.conv.weight"), nullptr);
  verify(model);
}

TEST(FindCut, LastRefusesACutBesideAShortcut) {
  // block.conv reads relu, and so does the Add: both ways go through relu.
  EXPECT_EQ(cut("last:3"), "relu");
  Model model = model_of(
      {Dim("N"), 4},
      {Linear{.name = "stem", .out = 4},
       Residual{.name = "block", .body = {Relu{.name = "in"}, Linear{.name = "fc", .out = 4}}}});
  EXPECT_THAT(
      error_of([&] { edit::before_last_layers(model, 1); }).what(),
      HasSubstr(
          "last:1: the last 1 layers begin with Gemm node 'fc', but not all goes through what "
          "it is applied to; all goes through 'stem'"));
}

TEST(FindCut, LastHeedsConstantNodesAndNotShapes) {
  Model model = classifier();
  Graph& graph = model.graph();
  // Weights as Paddle writes them, and a Reshape to the batch of the input, as old exporters do.
  Value* const weight = graph.find("fc2.weight");
  Node* const constant =
      graph.add_node("Constant", "", {}, {"constant"}, {{"value", weight->initializer()}},
                     graph.nodes().front().get());
  graph.replace_all_uses(weight, constant->output());
  graph.remove_initializer(weight);
  Value* const shape = graph.add_node("Shape", "", {graph.find("x")}, {"shape"})->output();
  Value* const probs = graph.find("probs");
  graph.set_outputs({graph.add_node("Reshape", "", {probs, shape}, {"y"})->output()});
  EXPECT_EQ(edit::before_last_layers(model, 1), "act");
}

TEST(FindCut, LastWantsLayersThatAreThere) {
  EXPECT_THAT(refusal("last:4"), HasSubstr("last:4: the model has 4 layers with weights, wanted "
                                           "more than 4: 'conv', 'block.conv', 'fc1', 'fc2'"));
  for (const char* where : {"last:", "last:0", "last:-1", "last:x"}) {
    EXPECT_THAT(refusal(where), HasSubstr("wanted last:N with a number above 0")) << where;
  }
  const Model model = model_of({Dim("N"), 4}, {Linear{.out = 2}});
  EXPECT_EQ(kind_of([&] { edit::before_last_layers(model, 0); }), ErrorKind::argument);
}

TEST(FindCut, APatternMeansTheLastOfWhatLeadsThere) {
  EXPECT_EQ(cut("block.*"), "block");
  EXPECT_EQ(cut("fc[12]"), "fc2");
  EXPECT_EQ(cut("(conv|bn)"), "bn");
}

TEST(FindCut, APatternThatLeadsToSeveralEndsNamesThem) {
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "stem", .out = 4}});
  Graph& graph = model.graph();
  LayerContext context(graph, 17);
  Value* const stem = graph.find("stem");
  graph.set_outputs({add_layer(context, Linear{.name = "head_a", .out = 2}, stem),
                     add_layer(context, Linear{.name = "head_b", .out = 3}, stem)});
  EXPECT_STREQ(error_of([&] { edit::find_cut(model, "truncate", ".*"); }).what(),
               "truncate: pattern '.*' matches 3 values, which lead to 2 ends: 'head_a', "
               "'head_b'; name one of them");
}

TEST(FindCut, WhatMatchesNothingIsUnknown) {
  EXPECT_THAT(refusal("fc1x"), HasSubstr("no value or node is named 'fc1x'; close names: 'fc1'"));
  EXPECT_THAT(refusal("layer4.*"), HasSubstr("no value or node is named 'layer4.*'"));
  EXPECT_THAT(refusal("fc1("), HasSubstr("fc1("));
}

}  // namespace
}  // namespace graft
