#include "train/trainable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/ops/builder.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor ones(const Shape& shape) {
  return Tensor::full(DType::f32, shape, 1.0);
}

/// A net with what exporters write beside weights.
std::unique_ptr<Graph> make_graph() {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const auto initializer = [&](std::string_view name, Tensor tensor) {
    return builder.expr(graph->add_initializer(name, std::move(tensor)));
  };
  const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{4, 3}}));
  const Expr weight = initializer("weight", ones({5, 3}));
  const Expr bias = initializer("bias", ones({5}));
  const Expr epsilon = initializer("epsilon", Tensor::scalar(1e-5F));
  const Expr mask = initializer(
      "mask", Tensor::from<float>({5}, {0, -std::numeric_limits<float>::infinity(), 0, 0, 0}));
  const Expr scale = initializer("bn.scale", ones({5}));
  const Expr shift = initializer("bn.bias", ones({5}));
  const Expr mean = initializer("bn.mean", ones({5}));
  const Expr var = initializer("bn.var", ones({5}));
  const Expr exponent = initializer("exponent", Tensor::from<float>({1}, {2.0F}));
  Expr h = matmul(x, transpose(weight, {1, 0})) + bias;
  h = call("BatchNormalization", {h + epsilon, scale, shift, mean, var});
  h = call("Pow", {h + mask, exponent});
  graph->add_output(h.value());
  return graph;
}

std::vector<std::string> names(const std::vector<Value*>& values) {
  std::vector<std::string> result;
  for (const Value* value : values) result.push_back(value->name());
  return result;
}

std::string error_of(const Graph& graph, const TrainableRequest& request) {
  try {
    choose_trainable(graph, request);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Trainable, WeightsByDefaultAndNothingElse) {
  const auto graph = make_graph();
  EXPECT_THAT(names(default_trainable(*graph)),
              ElementsAre("weight", "bias", "bn.scale", "bn.bias"));
}

TEST(Trainable, AFactorInAConstantNodeBelongsToTheFormula) {
  const auto build = [](Graph& graph, bool with_node) {
    Value* const x = graph.add_input("x", {DType::f32, SymShape{4, 3}});
    Value* const factor = with_node ? graph.add_node("Constant", "", {}, {"factor"})->output()
                                    : graph.add_initializer("factor", ones({1}));
    graph.add_output(graph.add_node("Mul", "", {x, factor}, {"y"})->output());
  };
  Graph file;
  build(file, true);
  Graph graph;  // where Constant nodes have become initializers
  build(graph, false);
  EXPECT_THAT(names(default_trainable(graph, &graph)), ElementsAre("factor"));
  EXPECT_THAT(names(default_trainable(graph, &file)), ElementsAre());
}

TEST(Trainable, PatternsChooseAndFreeze) {
  const auto graph = make_graph();
  EXPECT_THAT(names(choose_trainable(*graph, {.pattern = "bn\\..*"})),
              ElementsAre("bn.scale", "bn.bias"));
  EXPECT_THAT(names(choose_trainable(*graph, {.freeze = "bn\\..*"})),
              ElementsAre("weight", "bias"));
  EXPECT_THAT(names(choose_trainable(*graph, {.names = {"bn.mean"}})), ElementsAre("bn.mean"));
}

TEST(Trainable, WhatSelectsNothingIsAnError) {
  const auto graph = make_graph();
  EXPECT_THAT(error_of(*graph, {.pattern = "head.*"}),
              HasSubstr("matches none of 4 parameters: weight, bias, bn.scale, bn.bias"));
  EXPECT_THAT(error_of(*graph, {.freeze = "head.*"}), HasSubstr("freeze pattern 'head.*'"));
  EXPECT_THAT(error_of(*graph, {.pattern = "weight", .freeze = "w.*"}),
              HasSubstr("nothing to train"));
  EXPECT_THAT(error_of(*graph, {.pattern = "["}), HasSubstr("is no regular expression"));
  EXPECT_THAT(error_of(*graph, {.names = {"missing"}}), HasSubstr("'missing' is no float"));
}

TEST(Trainable, NamesTooLongForAPatternAreAnError) {
  const auto graph = make_graph();
  graph->rename(graph->find("weight"), std::string(100'000, 'w'));
  EXPECT_THAT(error_of(*graph, {.pattern = "w*"}), HasSubstr("of 100000 characters is too long"));
  EXPECT_THAT(error_of(*graph, {.freeze = "w*"}), HasSubstr("of 100000 characters is too long"));
  EXPECT_EQ(choose_trainable(*graph, {}).size(), 4U);
}

}  // namespace
}  // namespace graft
