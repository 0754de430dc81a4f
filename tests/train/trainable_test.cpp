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

/// GroupNorm as PyTorch's exporters write it, with ones and zeros of these names, and a factor.
std::unique_ptr<Graph> make_group_norm(const std::string& ones_name, const std::string& zeros_name,
                                       const std::string& factor_name) {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const auto initializer = [&](std::string_view name, Tensor tensor) {
    return builder.expr(graph->add_initializer(name, std::move(tensor)));
  };
  const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{4, 2, 9}}));
  Expr h = call("InstanceNormalization", {x, initializer(ones_name, ones({2})),
                                          initializer(zeros_name, Tensor::zeros(DType::f32, {2}))});
  h = h * initializer("gamma", ones({2, 1})) + initializer("beta", ones({2, 1}));
  graph->add_output((h * initializer(factor_name, ones({1}))).value());
  return graph;
}

TEST(Trainable, WhatExportersWriteOfAFormulaDoesNotTrain) {
  const auto found = [](const std::string& one, const std::string& zero,
                        const std::string& factor) {
    return names(default_trainable(*make_group_norm(one, zero, factor)));
  };
  EXPECT_THAT(found("val_8", "val_11", "val_47"), UnorderedElementsAre("gamma", "beta"));
  EXPECT_THAT(found("/n/Constant_1_output_0", "/n/Constant_output_0", "Constant_2_output_0"),
              UnorderedElementsAre("gamma", "beta"));
  EXPECT_THAT(found("n.weight", "n.bias", "temperature"),
              UnorderedElementsAre("n.weight", "n.bias", "gamma", "beta", "temperature"));
  EXPECT_THAT(found("val_11x", "val_", "/Constant_1"),
              UnorderedElementsAre("val_11x", "val_", "gamma", "beta", "/Constant_1"));
  EXPECT_THAT(found("val_8_1", "val_11_2", "val_47"), UnorderedElementsAre("gamma", "beta"));
}

/// Exporters merge equal parameters, which Identity nodes then hand on.
TEST(Trainable, AParameterThatTheFileHandsOnTrains) {
  const auto graph = make_group_norm("n.weight", "n.bias", "val_3");
  Graph file;
  Value* const merged = file.add_initializer("other.weight", ones({2}));
  file.add_node("Identity", "", {merged}, {"n.weight"});
  for (const char* name : {"n.bias", "gamma", "beta"}) file.add_initializer(name, ones({2}));
  EXPECT_THAT(names(default_trainable(*graph, &file)),
              UnorderedElementsAre("n.weight", "n.bias", "gamma", "beta"));
}

/// y = x op value, value behind `through` where that is not empty.
std::vector<std::string> found_in(const std::string& name, const Shape& shape,
                                  std::string_view op = "Mul", std::string_view through = "") {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const Tensor tensor = Tensor::full(DType::f32, shape, 2.0);
  Expr value = builder.expr(graph.add_initializer(name, tensor));
  if (!through.empty()) value = call(through, {value, x});
  graph.add_output(call(op, {x, value}).value());
  return names(default_trainable(graph));
}

TEST(Trainable, ConstantsOfTheSourceNeverTrain) {
  EXPECT_THAT(found_in("/stem/Constant_1_output_0", {4, 3}), ElementsAre());
  EXPECT_THAT(found_in("/stem/Constant_1_output_0", {3, 5}, "MatMul"), ElementsAre());
  EXPECT_THAT(found_in("val_1", {3, 5}, "MatMul"), ElementsAre("val_1"));
}

TEST(Trainable, WeightsBehindCastLikeTrainAndWhatItCopiesTheTypeOfDoesNot) {
  EXPECT_THAT(found_in("w", {4, 3}, "Mul", "CastLike"), ElementsAre("w"));
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const Expr like = builder.expr(graph.add_initializer("like", ones({4, 3})));
  const Expr w = builder.expr(graph.add_initializer("w", ones({3, 5})));
  graph.add_output(call("MatMul", {call("CastLike", {x, like}), w}).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("w"));
}

/// Written out, as torchvision's FrozenBatchNorm2d is.
TEST(Trainable, AFrozenNormThatIsWrittenOutStays) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  const auto parameter = [&](std::string_view name) {
    return builder.expr(graph.add_initializer(name, ones({3})));
  };
  const Expr normal = (x - parameter("bn.running_mean")) / parameter("bn.running_var");
  const Expr y = normal * parameter("bn.weight") + parameter("bn.bias");
  graph.add_output((y * parameter("gain.weight")).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("gain.weight"));
}

/// A BatchNormalization of f16 statistics, say.
TEST(Trainable, ANormWhoseStatisticsAreCastTrains) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  std::vector<Expr> operands{x};
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) {
    const Expr parameter = builder.expr(graph.add_initializer(name, ones({3})));
    operands.push_back(call("Cast", {parameter}, {{"to", 1}}));
  }
  graph.add_output(call("BatchNormalization", operands).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("bn.weight", "bn.bias"));
}

/// A field of a protobuf message: bytes of fewer than 128.
std::string field(int number, const std::string& bytes) {
  constexpr int kBytes = 2;
  return std::string{static_cast<char>(number << 3 | kBytes), static_cast<char>(bytes.size())} +
         bytes;
}

/// affine=False: only the statistics belong to it.
TEST(Trainable, ABatchNormalizationMayHaveNoParameters) {
  const auto build = [](const std::string& scale_name) {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph);
    const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{4, 3}}));
    const auto initializer = [&](std::string_view name, Tensor tensor) {
      return builder.expr(graph->add_initializer(name, std::move(tensor)));
    };
    const Expr scale = initializer(scale_name, ones({3}));
    const Expr shift = initializer("val_2", Tensor::zeros(DType::f32, {3}));
    const Expr mean = initializer("n.running_mean", Tensor::zeros(DType::f32, {3}));
    const Expr var = initializer("n.running_var", ones({3}));
    graph->add_output(call("BatchNormalization", {x, scale, shift, mean, var}).value());
    return graph;
  };
  const auto without = build("val_1");
  EXPECT_THAT(names(default_trainable(*without)), ElementsAre());
  EXPECT_THAT(names(scales_without_parameters(*without)), ElementsAre("val_1"));
  const auto with = build("n.weight");
  EXPECT_THAT(names(default_trainable(*with)), ElementsAre("n.weight"));
  EXPECT_THAT(names(scales_without_parameters(*with)), ElementsAre());
}

/// What io keeps of value_info { metadata_props { key: ... value: kind } }.
std::string info_of_kind(const std::string& kind) {
  const std::string key = "pkg.torch.export.graph_signature.InputSpec.kind";
  return field(13, field(4, field(1, key) + field(2, kind)));
}

TEST(Trainable, WhatTorchExportSaysIsBelieved) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 3}}));
  Value* const scalar = graph.add_initializer("gain", Tensor::scalar(2.0F));
  Value* const table = graph.add_initializer("table", ones({4, 3}));
  const Expr gain = call("Exp", {builder.expr(scalar)});
  graph.add_output((x * gain + builder.expr(table)).value());
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("table"));
  scalar->preserved_info = info_of_kind("PARAMETER");
  table->preserved_info = info_of_kind("BUFFER");
  EXPECT_THAT(names(default_trainable(graph)), ElementsAre("gain"));
}

TEST(Trainable, ParametersThatAnExporterNumberedTrain) {
  const auto graph = make_group_norm("val_1", "val_2", "val_3");
  graph->find("val_1")->initializer().copy_from(Tensor::from<float>({2}, {1.0F, 1.5F}));
  graph->find("val_2")->initializer().copy_from(Tensor::from<float>({2}, {0.0F, -0.5F}));
  EXPECT_THAT(names(default_trainable(*graph)),
              UnorderedElementsAre("val_1", "val_2", "gamma", "beta"));
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
