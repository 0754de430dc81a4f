// Parameters that are updated in their own ways, against PyTorch's param_groups.
#include "train/parameter_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/ops/builder.h"
#include "optim/update.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/step_model.h"
#include "train/train_step.h"

namespace graft {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::expect_error;

Tensor tensor_of(const json& from) {
  return Tensor::from(Shape(from.at("shape").get<std::vector<std::int64_t>>()),
                      from.at("values").get<std::vector<float>>());
}

/// Gemm, Relu, Gemm, Relu, Gemm with the weights of these names.
Model net(const json& weights) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 4}}));
  for (const std::string layer : {"body.0", "body.2", "head"}) {
    const auto parameter = [&](const std::string& part) {
      const std::string name = layer + part;
      return builder.expr(graph.add_initializer(name, tensor_of(weights.at(name))));
    };
    x = call("Gemm", {x, parameter(".weight"), parameter(".bias")}, {{"transB", 1}});
    if (layer != "head") x = call("Relu", {x});
  }
  graph.add_output(x.value());
  return model;
}

json read_cases() {
  std::ifstream file(std::string(GRAFT_SOURCE_DIR) + "/tests/oracles/parameter_groups.json");
  return json::parse(file);
}

void expect_near(const Model& model, const json& wanted) {
  for (const auto& [name, tensor] : wanted.items()) {
    const Tensor& found = model.graph().find(name)->initializer();
    const auto numbers = tensor.at("values").get<std::vector<float>>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(found.values<const float>()[i], numbers[i], 3e-6F) << name << ' ' << i;
    }
  }
}

class ParameterGroups : public ::testing::TestWithParam<std::pair<const char*, Optimizer>> {};

TEST_P(ParameterGroups, AreThoseOfPyTorch) {
  constexpr std::int64_t kUpdates = 12;
  const json wanted = read_cases().at(GetParam().first);
  Model model = net(wanted.at("first"));
  TrainStep step(model, {.optimizer = GetParam().second,
                         .groups = {{.pattern = "body\\.0.*", .lr = 3e-3F, .start = 4},
                                    {.pattern = "head.*", .lr = 5e-2F, .schedule = cosine_lr()},
                                    {.pattern = "(body.2|head).bias", .weight_decay = 0.0F}},
                         .ema = 0.9F,
                         .total_updates = kUpdates});
  EXPECT_EQ(step.groups().size(), 5U);
  const auto x = wanted.at("x").get<std::vector<float>>();
  const auto y = wanted.at("y").get<std::vector<std::int64_t>>();
  for (std::int64_t update = 0; update < kUpdates; ++update) {
    const auto inputs = std::span(x).subspan(static_cast<std::size_t>(update) * 20, 20);
    const auto labels = std::span(y).subspan(static_cast<std::size_t>(update) * 5, 5);
    const float loss =
        step.run({Tensor::from<float>({5, 4}, inputs)}, Tensor::from<std::int64_t>({5}, labels));
    EXPECT_NEAR(loss, wanted.at("losses").at(static_cast<std::size_t>(update)), 2e-6F) << update;
  }
  expect_near(model, wanted.at("last"));
  step.use_averages(true);
  expect_near(model, wanted.at("average"));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ParameterGroups,
    ::testing::Values(std::pair{"adamw", Optimizer(AdamW{.lr = 1e-2F, .weight_decay = 0.1F})},
                      std::pair{"sgd", Optimizer(SGD{.lr = 2e-2F,
                                                     .momentum = 0.9F,
                                                     .weight_decay = 0.05F,
                                                     .nesterov = true})}),
    [](const auto& test) { return test.param.first; });

/// One update of the linear model with x = (1,-1) and target 0.
float update(TrainStep& step) {
  return step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
}

TEST(ParameterGroups, TheLastGroupCountsForEachSetting) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(),
                         .optimizer = SGD{.lr = 0.5F},
                         .groups = {{.pattern = "w|b", .lr = 0.25F, .weight_decay = 0.5F},
                                    {.pattern = "b", .lr = 0.125F}}});
  ASSERT_EQ(step.groups().size(), 2U);
  EXPECT_THAT(step.groups()[1].parameters, ElementsAre("b"));
  EXPECT_EQ(step.groups()[1].lr, 0.125F);
  EXPECT_EQ(step.groups()[1].weight_decay, 0.5F);
  EXPECT_EQ(step.learning_rate("w"), 0.25F);
  EXPECT_EQ(step.learning_rate(), 0.5F);
  step.set_base_learning_rate(0.25F);
  EXPECT_EQ(step.learning_rate("b"), 0.0625F) << "in proportion";
  // b - rate * (gradient + decay * b), by hand: 0.5 - 0.0625 * (-1.5 + 0.25).
  update(step);
  EXPECT_FLOAT_EQ(model.graph().find("b")->initializer().values<float>()[0], 0.578125F);
}

TEST(ParameterGroups, ALateOneIsFrozenUntilItsUpdate) {
  Model model = test::linear_model();
  const Tensor before = model.graph().find("w")->initializer().clone();
  TrainStep step(
      model,
      {.loss = mse(), .optimizer = Adam{.lr = 0.1F}, .groups = {{.pattern = "w", .start = 2}}});
  update(step);
  EXPECT_EQ(step.learning_rate("w"), 0.0F);
  update(step);
  EXPECT_TRUE(equal_bits(model.graph().find("w")->initializer(), before));
  EXPECT_EQ(step.learning_rate("w"), 0.1F);
  update(step);
  // Adam's first update moves each weight by the rate, against its gradient's sign.
  EXPECT_NEAR(std::abs(model.graph().find("w")->initializer().values<float>()[0] - 1.0F), 0.1F,
              1e-4F);
}

/// y = BatchNormalization(x), then Gemm.
Model normalized_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const auto parameter = [&](const char* name, std::vector<float> content) {
    return builder.expr(
        graph.add_initializer(name, Tensor::from<float>({std::ssize(content)}, content)));
  };
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr normal =
      call("BatchNormalization", {x, parameter("scale", {1, 1}), parameter("shift", {0, 0}),
                                  parameter("mean", {0, 0}), parameter("variance", {1, 1})});
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::from<float>({2, 1}, {1, 2})));
  graph.add_output(matmul(normal, w).value());
  return model;
}

/// adr/0004 holds for those that are frozen for a while, too.
TEST(ParameterGroups, ALateBatchNormalizationKeepsItsStatisticsUntilThen) {
  Model model = normalized_model();
  TrainStep step(model, {.loss = mse(), .groups = {{.pattern = "scale|shift", .start = 1}}});
  const std::vector<Tensor> x{Tensor::from<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})};
  const Tensor target = Tensor::zeros(DType::f32, {4, 1});
  step.run(x, target);
  const Tensor& mean = model.graph().find("mean")->initializer();
  EXPECT_THAT(mean.values<const float>(), ElementsAre(0, 0));
  step.run(x, target);
  EXPECT_THAT(mean.values<const float>(),
              ElementsAre(::testing::FloatEq(0.4F), ::testing::FloatEq(0.5F)));
}

TEST(ParameterGroups, WhatMakesNoSenseIsRefused) {
  const auto with = [](std::vector<ParameterGroup> groups, Optimizer optimizer = SGD{}) {
    Model model = test::linear_model();
    const TrainStep step(model, {.loss = mse(), .optimizer = optimizer, .groups = groups});
  };
  expect_error(ErrorKind::argument,
               "parameter group 'haed.*' matches none of the 2 parameters that train: w, b",
               [&] { with({{.pattern = "haed.*", .lr = 1.0F}}); });
  expect_error(ErrorKind::argument, "'w': the learning rate is -1",
               [&] { with({{.pattern = "w", .lr = -1.0F}}); });
  expect_error(ErrorKind::argument, "weight_decay is -1",
               [&] { with({{.pattern = "w", .weight_decay = -1.0F}}); });
  expect_error(ErrorKind::argument, "start is -1", [&] { with({{.pattern = "w", .start = -1}}); });
  expect_error(ErrorKind::argument, "all parameters start later",
               [&] { with({{.pattern = ".*", .start = 1}}); });
  expect_error(ErrorKind::argument, "parameter group", [&] { with({{.pattern = "("}}); });
  const CustomOptimizer own{
      .step = [](const Expr& p, const Expr& g, const Expr& lr, const Expr&,
                 const std::vector<Expr>&) -> Update { return {p - lr * g}; }};
  expect_error(ErrorKind::argument, "optimizer custom has no weight_decay setting",
               [&] { with({{.pattern = "w", .weight_decay = 0.1F}}, own); });
}

TEST(ParameterGroups, AnExportedStepTakesDecaysButOneRate) {
  const Model model = test::linear_model();
  const auto exported = [&](ParameterGroup group) {
    const ValueType batch{DType::f32, SymShape{2, 2}};
    return export_step(model, {.loss = mse(), .groups = {std::move(group)}}, {batch}, batch);
  };
  EXPECT_EQ(exported({.pattern = "w", .weight_decay = 0.5F}).variables.size(), 2U);
  expect_error(ErrorKind::unsupported, "one input for the rate",
               [&] { exported({.pattern = "w", .lr = 0.5F}); });
}

}  // namespace
}  // namespace graft
