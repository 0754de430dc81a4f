#include "train/trainable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/graph/model.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

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

TEST(Trainable, WeightsBehindQuantizationTrain) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const Expr w = builder.expr(graph.add_initializer("w", ones({3, 5})));
  const Expr scale = builder.expr(graph.add_initializer("w.scale", Tensor::scalar(0.1F)));
  const Expr zero = builder.expr(graph.add_initializer("w.zero", Tensor::scalar<std::int8_t>(0)));
  const Expr rounded =
      call("DequantizeLinear", {call("QuantizeLinear", {w, scale, zero}), scale, zero});
  graph.add_output(matmul(x, rounded).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("w"));
}

/// As the head that ArcFace judges: cosines with directions.
TEST(Trainable, WeightsThatAreNormalizedFirstTrain) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const Expr w = builder.expr(graph.add_initializer("w", ones({5, 3})));
  const Expr directions = call("LpNormalization", {w}, {{"axis", 1}});
  graph.add_output(matmul(x, transpose(directions, {1, 0})).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("w"));
}

TEST(Trainable, AFactorInAConstantNodeBelongsToTheFormula) {
  for (const Role role : {Role::unknown, Role::folded}) {
    Model model;
    model.set_opset("", 17);
    Graph& graph = model.graph();
    Value* const x = graph.add_input("x", {DType::f32, SymShape{4, 3}});
    Value* const factor =
        graph.add_node("Constant", "", {}, {"factor"}, {{"value", ones({1})}})->output();
    factor->role = role;
    graph.add_output(graph.add_node("Mul", "", {x, factor}, {"y"})->output());
    passes::upgrade_opset(model);
    passes::infer_shapes(graph);
    EXPECT_EQ(default_trainable(graph).size(), role == Role::unknown ? 1U : 0U);
  }
}

/// GroupNorm as PyTorch's exporters write it, with ones, zeros and a factor of this role.
std::unique_ptr<Graph> make_group_norm(Role role) {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const auto initializer = [&](std::string_view name, Tensor tensor, Role its = Role::unknown) {
    Value* const value = graph->add_initializer(name, std::move(tensor));
    value->role = its;
    return builder.expr(value);
  };
  const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{4, 2, 9}}));
  Expr h =
      call("InstanceNormalization", {x, initializer("ones", ones({2}), role),
                                     initializer("zeros", Tensor::zeros(DType::f32, {2}), role)});
  h = h * initializer("gamma", ones({2, 1})) + initializer("beta", ones({2, 1}));
  graph->add_output((h * initializer("factor", ones({1}), role)).value());
  return graph;
}

TEST(Trainable, WhatExportersWriteOfAFormulaDoesNotTrain) {
  const auto found = [](Role role) { return names(default_trainable(*make_group_norm(role))); };
  const auto rest = UnorderedElementsAre("gamma", "beta");
  const auto all = UnorderedElementsAre("ones", "zeros", "gamma", "beta", "factor");
  EXPECT_THAT(found(Role::folded), rest);
  EXPECT_THAT(found(Role::constant), rest);
  EXPECT_THAT(found(Role::buffer), rest);
  EXPECT_THAT(found(Role::statistic), rest);
  EXPECT_THAT(found(Role::unknown), all);
  EXPECT_THAT(found(Role::parameter), all);
}

/// What only the working copy has could not be saved.
TEST(Trainable, WhatTheFileDoesNotHaveDoesNotTrain) {
  const auto graph = make_group_norm(Role::parameter);
  Graph file;
  Value* const merged = file.add_initializer("other.weight", ones({2}));
  file.add_node("Identity", "", {merged}, {"ones"});
  for (const char* name : {"zeros", "gamma"}) file.add_initializer(name, ones({2}));
  EXPECT_THAT(names(default_trainable(*graph, &file)),
              UnorderedElementsAre("ones", "zeros", "gamma"));
}

/// y = x op value, value behind `through` where that is not empty.
std::vector<std::string> found_in(Role role, const Shape& shape, std::string_view op = "Mul",
                                  std::string_view through = "") {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, shape, 2.0));
  w->role = role;
  Expr value = builder.expr(w);
  if (!through.empty()) value = call(through, {value, x});
  graph.add_output(call(op, {x, value}).value());
  return names(default_trainable(graph));
}

TEST(Trainable, ConstantsOfTheSourceNeverTrain) {
  EXPECT_THAT(found_in(Role::constant, {4, 3}), ElementsAre());
  EXPECT_THAT(found_in(Role::constant, {3, 5}, "MatMul"), ElementsAre());
  EXPECT_THAT(found_in(Role::folded, {3, 5}, "MatMul"), ElementsAre("w"));
}

TEST(Trainable, WeightsBehindCastLikeTrainAndWhatItCopiesTheTypeOfDoesNot) {
  EXPECT_THAT(found_in(Role::unknown, {4, 3}, "Mul", "CastLike"), ElementsAre("w"));
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const Expr like = builder.expr(graph.add_initializer("like", ones({4, 3})));
  const Expr w = builder.expr(graph.add_initializer("w", ones({3, 5})));
  graph.add_output(call("MatMul", {call("CastLike", {x, like}), w}).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("w"));
}

/// affine=False: only the statistics belong to it.
TEST(Trainable, ABatchNormalizationMayHaveNoParameters) {
  const auto build = [](Role role) {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph);
    const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{4, 3}}));
    const auto initializer = [&](std::string_view name, Tensor tensor, Role its) {
      Value* const value = graph->add_initializer(name, std::move(tensor));
      value->role = its;
      return builder.expr(value);
    };
    const Expr scale = initializer("scale", ones({3}), role);
    const Expr shift = initializer("shift", Tensor::zeros(DType::f32, {3}), Role::folded);
    const Expr mean = initializer("mean", Tensor::zeros(DType::f32, {3}), Role::statistic);
    const Expr var = initializer("var", ones({3}), Role::statistic);
    graph->add_output(call("BatchNormalization", {x, scale, shift, mean, var}).value());
    return graph;
  };
  for (const Role role : {Role::folded, Role::constant}) {
    const auto without = build(role);
    EXPECT_THAT(names(default_trainable(*without)), ElementsAre());
    EXPECT_THAT(names(scales_without_parameters(*without)), ElementsAre("scale"));
  }
  const auto with = build(Role::unknown);
  EXPECT_THAT(names(default_trainable(*with)), ElementsAre("scale"));
  EXPECT_THAT(names(scales_without_parameters(*with)), ElementsAre());
}

TEST(Trainable, ParametersTrainWhateverReadsThemAndBuffersDoNot) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  Value* const scalar = graph.add_initializer("gain", Tensor::scalar(2.0F));
  Value* const table = graph.add_initializer("table", ones({4, 3}));
  const Expr gain = call("Exp", {builder.expr(scalar)});
  graph.add_output((x * gain + builder.expr(table)).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("table"));
  scalar->role = Role::parameter;
  table->role = Role::buffer;
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("gain"));
}

TEST(Trainable, WhatAnExporterMadeOfParametersTrains) {
  const auto graph = make_group_norm(Role::folded);
  graph->find("ones")->initializer().copy_from(Tensor::from<float>({2}, {1.0F, 1.5F}));
  graph->find("zeros")->initializer().copy_from(Tensor::from<float>({2}, {0.0F, -0.5F}));
  EXPECT_THAT(names(default_trainable(*graph)),
              UnorderedElementsAre("ones", "zeros", "gamma", "beta"));
}

/// Reads double with each node, and each has the next behind it.
TEST(Trainable, WeightsFarBehindAreFoundAtOnce) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, std::nullopt}));
  Value* far = graph.add_initializer("w", ones({1}));
  constexpr int kNodes = 50'000;
  for (int i = 0; i < kNodes; ++i) {
    far = graph.add_node("Concat", "", {far, far}, {"far_" + std::to_string(i)})->output();
  }
  graph.add_output(call("MatMul", {x, builder.expr(far)}).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("w"));
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

TEST(Trainable, PatternsTakeNamesOfAnyLength) {
  const auto graph = make_graph();
  const std::string name(100'000, 'w');
  graph->rename(graph->find("weight"), name);
  EXPECT_THAT(names(choose_trainable(*graph, {.pattern = "(w|ww)*"})), ElementsAre(name));
  EXPECT_EQ(choose_trainable(*graph, {.freeze = "w*"}).size(), 3U);
}

}  // namespace
}  // namespace graft
