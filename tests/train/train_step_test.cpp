#include "train/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/layers/append.h"
#include "core/layers/nets.h"
#include "tests/train/nets.h"
#include "train/evaluator.h"
#include "train/trainable.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

const Tensor& weight(const Model& model, std::string_view name) {
  return model.graph().find(name)->initializer();
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return text(name(error.kind()), ": ", error.what());
  }
  return "no error";
}

/// x = (1,-1), target (0,0): y = (-1.5,-2.5), loss = mean(y^2) = 4.25, dy = y*2/2 = (-1.5,-2.5),
/// dw = x^T dy = ((-1.5,-2.5),(1.5,2.5)), db = dy.
TEST(TrainStep, OneSgdStepByHand) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  const float loss =
      step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_FLOAT_EQ(loss, 4.25F);
  EXPECT_THAT(floats(step.prediction()), ElementsAre(-1.5F, -2.5F));
  EXPECT_THAT(floats(weight(model, "w")),
              ElementsAre(FloatNear(1.15F, 1e-6F), FloatNear(2.25F, 1e-6F), FloatNear(2.85F, 1e-6F),
                          FloatNear(3.75F, 1e-6F)));
  EXPECT_THAT(floats(weight(model, "b")),
              ElementsAre(FloatNear(0.65F, 1e-6F), FloatNear(-0.25F, 1e-6F)));
  EXPECT_EQ(step.updates(), 1);
  EXPECT_EQ(step.parameter_count(), 6);
  EXPECT_THAT(step.parameter_names(), ElementsAre("w", "b"));
}

/// A program adds its loss to a clone, to keep its nodes out of the file.
TEST(TrainStep, MergedParametersThatACloneTrainedAreTakenByTheModel) {
  Model model = test::linear_model();
  Graph& graph = model.graph();
  Node* const same = graph.add_node("Identity", "", {graph.find("b")}, {"c"});
  same->output()->set_type(graph.find("b")->type());
  Node* const sum = graph.add_node("Mul", "", {graph.outputs()[0], same->output()}, {"scaled"});
  graph.set_outputs({sum->output()});
  Model clone = model.clone();
  TrainStep step(clone, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}, .parameters = {"c"}});
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_FALSE(model.graph().find("c")->is_initializer());
  EXPECT_EQ(take_parameters(model, clone), 1U);
  EXPECT_EQ(floats(weight(model, "c")), floats(weight(clone, "c")));
  EXPECT_NE(floats(weight(model, "c")), floats(weight(model, "b")));
}

TEST(TrainStep, PlansBeforeTheFirstStepAndChangesNothing) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  EXPECT_EQ(step.arena_bytes(), 0U);
  step.plan({Tensor::zeros(DType::f32, {1, 2})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_GT(step.arena_bytes(), 0U);
  EXPECT_EQ(step.updates(), 0);
  EXPECT_THAT(floats(weight(model, "w")), ElementsAre(1, 2, 3, 4));
  EXPECT_FLOAT_EQ(
      step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2})), 4.25F);
  EXPECT_THAT(error_text([&] {
                step.plan({Tensor::zeros(DType::f32, {1, 3})}, Tensor::zeros(DType::f32, {1, 2}));
              }),
              HasSubstr("shape: input"));
}

TEST(TrainStep, WhatRanLastCanBeAskedThoughItsPlanGaveWayToOthers) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  for (std::int64_t batch = 2; batch < 40; ++batch) {
    step.plan({Tensor::zeros(DType::f32, {batch, 2})}, Tensor::zeros(DType::f32, {batch, 2}));
  }
  EXPECT_THAT(floats(step.prediction()), ElementsAre(-1.5F, -2.5F));
}

TEST(TrainStep, WithoutAnOptimizerGradientsAreKeptAndNothingChanges) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(), .optimizer = std::nullopt});
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  const auto gradients = step.gradients();
  EXPECT_THAT(floats(gradients.at("w")), ElementsAre(-1.5F, -2.5F, 1.5F, 2.5F));
  EXPECT_THAT(floats(gradients.at("b")), ElementsAre(-1.5F, -2.5F));
  EXPECT_THAT(floats(weight(model, "w")), ElementsAre(1, 2, 3, 4));
}

TEST(TrainStep, OnlyTheChosenParametersTrain) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}, .trainable = "b"});
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_THAT(floats(weight(model, "w")), ElementsAre(1, 2, 3, 4));
  EXPECT_NE(floats(weight(model, "b"))[0], 0.5F);
}

/// Two micro-batches of 3 are one batch of 6, whatever the optimizer.
TEST(TrainStep, AccumulationEqualsTheLargerBatch) {
  const Tensor x = test::random_tensor({6, 2}, 1);
  const Tensor y = test::random_tensor({6, 2}, 2);
  const auto half = [](const Tensor& all, int which) {
    return Tensor::from<float>({3, 2}, all.values<const float>().subspan(6 * which, 6));
  };
  Model whole = test::linear_model();
  Model parts = test::linear_model();
  const Optimizer adam = Adam{.lr = 0.05F};
  TrainStep one(whole, {.loss = mse(), .optimizer = adam, .clip = {.norm = 1.0F}});
  TrainStep two(parts, {.loss = mse(), .optimizer = adam, .clip = {.norm = 1.0F}, .accumulate = 2});
  for (int update = 0; update < 3; ++update) {
    one.run({x}, y);
    two.run({half(x, 0)}, half(y, 0));
    two.run({half(x, 1)}, half(y, 1));
  }
  EXPECT_EQ(two.updates(), 3);
  const auto wanted = floats(weight(whole, "w"));
  const auto found = floats(weight(parts, "w"));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5F);
}

/// A smaller batch has a plan of its own but the same momentum: two steps on different batch sizes
/// follow v1 = g1, v2 = 0.9 v1 + g2.
TEST(TrainStep, BatchSizesShareOptimizerState) {
  Model model = test::linear_model();
  TrainStep step(model,
                 {.loss = mse(), .optimizer = SGD{.lr = 0.1F, .momentum = 0.9F}, .trainable = "b"});
  const auto ones = [](std::int64_t rows) { return Tensor::full(DType::f32, {rows, 2}, 1.0); };
  // x = 0, so y = b; target 1: db = b - 1 for every batch size.
  step.run({Tensor::zeros(DType::f32, {4, 2})}, ones(4));
  const float b1 = 0.5F - 0.1F * -0.5F;
  EXPECT_NEAR(floats(weight(model, "b"))[0], b1, 1e-6F);
  step.run({Tensor::zeros(DType::f32, {1, 2})}, ones(1));
  const float b2 = b1 - 0.1F * (0.9F * -0.5F + (b1 - 1.0F));
  EXPECT_NEAR(floats(weight(model, "b"))[0], b2, 1e-6F);
  EXPECT_EQ(step.state_bytes(), 2 * sizeof(float));
}

TEST(TrainStep, AStepThatThrowsChangesNothing) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  TrainStep step(model, {.optimizer = SGD{.lr = 0.1F}});
  const Tensor x = test::random_tensor({2, 1, 2, 2}, 1);
  step.run({x}, test::cyclic_labels(2, 3));
  const std::vector<Tensor> before = test::snapshot(model);
  EXPECT_THAT(error_text([&] {
                step.run({x}, Tensor::from<std::int64_t>({2}, {0, 3}));
              }),
              HasSubstr("argument: class index 3 at position 1 of the targets is outside [0, 3)"));
  EXPECT_THAT(error_text([&] { step.run({x}, test::cyclic_labels(3, 3)); }), HasSubstr("shape: "));
  EXPECT_THAT(error_text([&] { step.run({x}, test::random_tensor({2}, 1)); }), HasSubstr("type: "));
  EXPECT_THAT(error_text([&] {
                step.run({test::random_tensor({2, 1, 2, 3}, 1)}, test::cyclic_labels(2, 3));
              }),
              HasSubstr("shape: input 'input' is f32[N,1,2,2], got f32[2,1,2,3]"));
  EXPECT_EQ(step.updates(), 1);
  const std::vector<Tensor> after = test::snapshot(model);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(equal_bits(before[i], after[i]));
}

TEST(TrainStep, OptionsThatDoNotFitAreRefused) {
  Model model = test::linear_model();
  const auto make = [&](TrainOptions options) {
    return error_text([&] { TrainStep(model, std::move(options)); });
  };
  EXPECT_THAT(make({.trainable = "head.*"}),
              HasSubstr("'head.*' matches none of 2 parameters: w, b"));
  EXPECT_THAT(make({.trainable = "("}), HasSubstr("is no regular expression"));
  EXPECT_THAT(make({.parameters = {"x"}}), HasSubstr("'x' is no float initializer"));
  EXPECT_THAT(make({.device = "gpu7"}),
              HasSubstr("device: unknown device 'gpu7'; valid here: auto, cpu"));
  EXPECT_THAT(make({.accumulate = 0}), HasSubstr("accumulate is 0"));
  EXPECT_THAT(make({.optimizer = SGD{.lr = -1.0F}}), HasSubstr("lr is -1"));
}

TEST(TrainStep, TheScheduleScalesTheRateOfEachUpdate) {
  Model model = test::linear_model();
  TrainStep step(model, {.loss = mse(),
                         .optimizer = SGD{.lr = 0.1F},
                         .trainable = "b",
                         .schedule = step_lr(1, 0.5F),
                         .total_updates = 3});
  const Tensor x = Tensor::zeros(DType::f32, {1, 2});
  const Tensor target = Tensor::full(DType::f32, {1, 2}, 1.0);
  float b = 0.5F;
  for (const float rate : {0.1F, 0.05F, 0.025F}) {
    EXPECT_FLOAT_EQ(step.learning_rate(), rate);
    step.run({x}, target);
    b -= rate * (b - 1.0F);
    EXPECT_NEAR(floats(weight(model, "b"))[0], b, 1e-6F);
  }
}

Model batch_norm_model() {
  Model model = test::linear_model();
  edit::append(model, {BatchNorm{.name = "bn"}});
  return model;
}

/// x = 0 and b = (0.5,-0.5) shifted by rows of x w: with w = identity the batch (0,0),(2,4) gives
/// channel means (1.5,1.5), unbiased variances (2,8); running: 0.9*0 + 0.1*mean, 0.9*1 + 0.1*var.
TEST(TrainStep, RunningStatisticsFollowPyTorch) {
  Model model = batch_norm_model();
  model.graph().find("w")->initializer().copy_from(Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.0F}});
  const Tensor x = Tensor::from<float>({2, 2}, {0, 0, 2, 4});
  step.run({x}, Tensor::zeros(DType::f32, {2, 2}));
  EXPECT_THAT(floats(weight(model, "bn.running_mean")),
              ElementsAre(FloatNear(0.15F, 1e-6F), FloatNear(0.15F, 1e-6F)));
  EXPECT_THAT(floats(weight(model, "bn.running_var")),
              ElementsAre(FloatNear(1.1F, 1e-6F), FloatNear(1.7F, 1e-6F)));
  // Normalised with the batch's own statistics: +-1 up to epsilon.
  EXPECT_NEAR(std::abs(floats(step.prediction())[0]), 1.0F, 1e-4F);
}

/// Its ones and zeros are the exporter's.
TEST(TrainStep, StatisticsOfANormWithoutParametersFollowUnlessSomethingIsFrozen) {
  const auto train = [](const std::string& trainable) {
    Model model = batch_norm_model();
    for (const char* name : {"bn.weight", "bn.bias"}) {
      model.graph().find(name)->role = Role::constant;
    }
    TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}, .trainable = trainable});
    EXPECT_THAT(step.parameter_names(), ElementsAre("w", "b"));
    step.run({test::random_tensor({4, 2}, 3)}, Tensor::full(DType::f32, {4, 2}, 1.0));
    EXPECT_THAT(floats(weight(model, "bn.weight")), ElementsAre(1, 1));
    EXPECT_THAT(floats(weight(model, "bn.bias")), ElementsAre(0, 0));
    return floats(weight(model, "bn.running_mean"));
  };
  EXPECT_THAT(train(""), testing::Not(ElementsAre(0, 0)));
  EXPECT_THAT(train("[wb]"), ElementsAre(0, 0));
}

TEST(TrainStep, AFrozenBatchNormalizationKeepsItsStatistics) {
  Model model = batch_norm_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}, .trainable = "[wb]"});
  step.run({test::random_tensor({4, 2}, 3)}, Tensor::zeros(DType::f32, {4, 2}));
  EXPECT_THAT(floats(weight(model, "bn.running_mean")), ElementsAre(0, 0));
  EXPECT_THAT(floats(weight(model, "bn.running_var")), ElementsAre(1, 1));
}

std::vector<float> dropout_run(std::uint64_t seed) {
  Model model = test::linear_model();
  edit::append(model, {Dropout{.ratio = 0.5F}});
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.0F}, .seed = seed});
  const Tensor x = Tensor::full(DType::f32, {32, 2}, 1.0);
  step.run({x}, Tensor::zeros(DType::f32, {32, 2}));
  std::vector<float> outputs = floats(step.prediction());
  step.run({x}, Tensor::zeros(DType::f32, {32, 2}));
  const std::vector<float> second = floats(step.prediction());
  EXPECT_NE(outputs, second) << "each step draws anew";
  outputs.insert(outputs.end(), second.begin(), second.end());
  return outputs;
}

TEST(TrainStep, DropoutIsMadeFromItsSeed) {
  const std::vector<float> first = dropout_run(1);
  EXPECT_EQ(first, dropout_run(1));
  EXPECT_NE(first, dropout_run(2));
  // Kept values are doubled, about half are dropped.
  const auto dropped = std::count(first.begin(), first.end(), 0.0F);
  EXPECT_GT(dropped, 40);
  EXPECT_LT(dropped, 88);
  for (const float value : first) EXPECT_TRUE(value == 0.0F || value == 9.0F || value == 11.0F);
}

/// y = ((x w) w) by a Loop of two turns; with w = {{1,1},{0,1}} x w w = (x0, 2 x0 + x1).
Model looping_model(bool count_is_known) {
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}});
  Value* const w = graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, 1, 0, 1}));
  Value* const turns = count_is_known
                           ? graph.add_initializer("turns", Tensor::scalar<std::int64_t>(2))
                           : graph.add_input("turns", {DType::i64, SymShape{}});
  auto body = std::make_shared<Graph>("body", &graph);
  body->add_input("turn", {DType::i64, SymShape{}});
  Value* const go = body->add_input("go", {DType::boolean, SymShape{}});
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  body->add_output(go);
  body->add_output(body->add_node("MatMul", "", {state, w}, {"product"})->output());
  Node* const loop =
      graph.add_node("Loop", "", {turns, nullptr, x}, {"y"}, {{"body", AttributeValue(body)}});
  loop->set_name("repeat");
  graph.add_output(loop->output());
  return model;
}

/// Loss = mean(y^2) = (y0^2 + y1^2) / 2, x = (1,1), y = (1,3), dy = y. With h = x w = (1,2):
/// dw = h^T dy + x^T (dy w^T) = ((1,3),(2,6)) + ((4,3),(4,3)).
TEST(TrainStep, GradientsPassThroughUnrolledLoops) {
  Model model = looping_model(true);
  TrainStep step(model, {.loss = mse(), .optimizer = std::nullopt});
  step.run({Tensor::from<float>({1, 2}, {1, 1})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_THAT(floats(step.prediction()), ElementsAre(1, 3));
  EXPECT_THAT(floats(step.gradients().at("w")), ElementsAre(5, 6, 6, 9));
}

TEST(TrainStep, LoopsOfUnknownLengthAreRefusedByName) {
  Model model = looping_model(false);
  TrainStep step(model, {.loss = mse()});
  const std::string message = error_text([&] {
    step.run({Tensor::from<float>({1, 2}, {1, 1}), Tensor::scalar<std::int64_t>(2)},
             Tensor::zeros(DType::f32, {1, 2}));
  });
  EXPECT_THAT(message, HasSubstr("Loop node 'repeat'"));
  EXPECT_THAT(message, HasSubstr("the number of its turns depends on data"));
}

TEST(TrainStep, OptionsThatMakeNoSenseAreRefusedAtOnce) {
  const auto refused = [](const TrainOptions& options) {
    Model model = test::linear_model();
    return error_text([&] { TrainStep(model, options); });
  };
  EXPECT_THAT(refused({.output = "typo"}), HasSubstr("no output 'typo'"));
  EXPECT_THAT(refused({.loss = {.name = "typo"}}), HasSubstr("unknown loss 'typo'"));
  EXPECT_THAT(refused({.clip = {.norm = -1.0F}}), HasSubstr("clip norm is -1"));
  EXPECT_THAT(refused({.schedule = step_lr(0)}), HasSubstr("every cannot be 0"));
  EXPECT_THAT(refused({.groups = {{.pattern = "b", .schedule = step_lr(0)}}}),
              HasSubstr("every cannot be 0"));
  EXPECT_THAT(refused({.total_updates = -1}), HasSubstr("total_updates is -1"));
  Model model = test::linear_model();
  EXPECT_THAT(error_text([&] { Evaluator(model, {.output = "typo"}); }),
              HasSubstr("no output 'typo'"));
  TrainStep step(model, {.loss = mse()});
  EXPECT_THAT(error_text([&] { step.set_total_updates(-1); }), HasSubstr("total_updates is -1"));
}

}  // namespace
}  // namespace graft
