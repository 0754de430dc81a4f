// Averages of weights: kept, measured with, stored. That they are PyTorch's is in
// parameter_groups_test.cpp.
#include "train/averages.h"

#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/trainer.h"

namespace graft {
namespace {

using testing::expect_error;

const Tensor& bias(const Model& model) {
  return model.graph().find("b")->initializer();
}

void update(TrainStep& step) {
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
}

const TrainOptions kOptions{.loss = mse(), .optimizer = SGD{.lr = 0.1F}, .ema = 0.9F};

/// d is 2/11 in the first update: 0.5 becomes 0.65, the average 0.65 - 2/11 * 0.15.
TEST(Averages, AreInTheModelOnlyWhenAsked) {
  Model model = test::linear_model();
  TrainStep step(model, kOptions);
  step.use_averages(true);
  EXPECT_FALSE(step.uses_averages()) << "there are none yet";
  update(step);
  EXPECT_FLOAT_EQ(bias(model).values<float>()[0], 0.65F);
  const Tensor trained = bias(model).clone();
  step.use_averages(true);
  EXPECT_NEAR(bias(model).values<float>()[0], 0.65F - 0.15F * 2 / 11, 1e-6F);
  expect_error(ErrorKind::argument, "the model holds averages", [&] { update(step); });
  expect_error(ErrorKind::argument, "the model holds averages", [&] { step.state(); });
  step.use_averages(false);
  EXPECT_TRUE(equal_bits(bias(model), trained));
  update(step);
}

/// The model's own "b.average" takes the name that the average of "b" would have.
TEST(Averages, AreFoundBesideNamesLikeTheirs) {
  Model model = test::linear_model();
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr own =
      builder.expr(graph.add_initializer("b.average", Tensor::from<float>({2}, {8, 8})));
  Value* const sum = (builder.expr(graph.find("y")) + own).value();
  graph.set_outputs({sum});
  TrainStep step(model, kOptions);
  update(step);
  step.use_averages(true);
  EXPECT_LT(bias(model).values<float>()[0], 1.0F);
  EXPECT_GT(graph.find("b.average")->initializer().values<float>()[0], 6.0F);
}

/// f16 parameters train in f32, and their averages are no less.
TEST(Averages, AreOfThirtyTwoBits) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f16, SymShape{Dim("N"), 2}}));
  const Tensor w = Tensor::from<float>({2, 2}, {1, 2, 3, 4}).cast(DType::f16);
  const Tensor b = Tensor::from<float>({2}, {0.5F, -0.5F}).cast(DType::f16);
  const Expr product = matmul(x, builder.expr(graph.add_initializer("w", w)));
  graph.add_output((product + builder.expr(graph.add_initializer("b", b))).value());
  TrainStep step(model, kOptions);
  step.run({Tensor::from<float>({1, 2}, {1, -1}).cast(DType::f16)},
           Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_EQ(step.state().optimizer.at("b.average").dtype(), DType::f32);
  step.use_averages(true);
  EXPECT_NEAR(to_double(bias(model)).front(), 0.65 - 0.15 * 2 / 11, 1e-3);
}

TEST(Averages, AreWhatTheTrainerMeasures) {
  const auto data = tensor_dataset({{"x", test::random_tensor({8, 2}, 1)}},
                                   {"y", test::random_tensor({8, 2}, 2)});
  Model model = test::linear_model();
  Trainer trainer(model, kOptions);
  DataLoader loader(data, {.batch = 4});
  trainer.fit(loader, {.epochs = 2});
  const Evaluation measured = trainer.evaluate(loader);
  EXPECT_FALSE(trainer.train_step().uses_averages());
  const double trained = Evaluator(model, {.loss = mse()}).run(loader).loss;
  trainer.train_step().use_averages(true);
  EXPECT_EQ(Evaluator(model, {.loss = mse()}).run(loader).loss, measured.loss);
  EXPECT_NE(trained, measured.loss);
}

TEST(Averages, OfAnotherRunAreRefused) {
  Model model = test::linear_model();
  TrainStep with(model, kOptions);
  update(with);
  Model other = test::linear_model();
  TrainStep without(other, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  expect_error(ErrorKind::argument, "'b.average'", [&] { without.load_state(with.state()); });
  update(without);
  expect_error(ErrorKind::argument, "lacks what the optimizer keeps as 'average'",
               [&] { with.load_state(without.state()); });
  Model third = test::linear_model();
  expect_error(ErrorKind::argument, "ema is 1", [&] { TrainStep(third, {.ema = 1.0F}); });
}

}  // namespace
}  // namespace graft
