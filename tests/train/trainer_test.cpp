#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/layers/nets.h"
#include "data/tensor_dataset.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

/// 60 images of 1x2x2 whose class is the sign of their first pixel.
std::shared_ptr<const Dataset> separable() {
  const Tensor images = test::random_tensor({60, 1, 2, 2}, 5);
  Tensor labels = Tensor::empty(DType::i64, {60});
  for (std::size_t i = 0; i < 60; ++i) {
    labels.values<std::int64_t>()[i] = images.values<const float>()[4 * i] > 0.0F ? 1 : 0;
  }
  return tensor_dataset({{"x", images}}, {"y", labels});
}

TrainOptions options() {
  return {.optimizer = Adam{.lr = 0.02F}};
}

TEST(Trainer, LearnsASeparableSet) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, options());
  DataLoader loader(separable(), {.batch = 16, .shuffle = true, .seed = 3});
  DataLoader held_back(separable(), {.batch = 25});
  int steps = 0;
  const auto reports = trainer.fit(
      loader, {.epochs = 20, .validation = &held_back, .on_step = [&](const Progress& progress) {
                 EXPECT_EQ(progress.batches, 4);
                 ++steps;
                 return true;
               }});
  ASSERT_EQ(reports.size(), 20U);
  EXPECT_EQ(steps, 80);
  EXPECT_LT(reports.back().loss, reports.front().loss);
  EXPECT_EQ(reports.back().samples, 60);
  EXPECT_EQ(reports.back().validation->accuracy, 1.0);
  EXPECT_EQ(reports.back().validation->samples, 60);
  EXPECT_EQ(trainer.evaluate(held_back).accuracy, 1.0);
}

std::vector<Tensor> weights_after_two_epochs() {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, options());
  DataLoader loader(separable(), {.batch = 16, .shuffle = true, .seed = 3});
  trainer.fit(loader, {.epochs = 2});
  return test::snapshot(model);
}

TEST(Trainer, TheSameSeedGivesTheSameBits) {
  const std::vector<Tensor> first = weights_after_two_epochs();
  const std::vector<Tensor> second = weights_after_two_epochs();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(equal_bits(first[i], second[i])) << i;
}

TEST(Trainer, EvaluatesOneBatchAsALoaderOfIt) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, options());
  DataLoader loader(separable(), {.batch = 60});
  const Batch batch = *loader.begin();
  const Evaluation one = trainer.evaluate(batch);
  const Evaluation all = trainer.evaluate(loader);
  EXPECT_EQ(one.loss, all.loss);
  EXPECT_EQ(one.accuracy, all.accuracy);
  EXPECT_EQ(one.samples, 60);
  for (Value* value : model.graph().initializers()) {
    for (float& x : value->initializer().values<float>()) x = INFINITY;
  }
  EXPECT_THROW(trainer.evaluate(batch), Error);
}

TEST(Trainer, CallbacksStopIt) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, options());
  DataLoader loader(separable(), {.batch = 16});
  const auto by_step =
      trainer.fit(loader, {.epochs = 5, .on_step = [](const Progress& p) { return p.batch < 2; }});
  EXPECT_EQ(trainer.train_step().updates(), 2);
  EXPECT_EQ(by_step.size(), 1U);
  const auto by_epoch =
      trainer.fit(loader, {.epochs = 5, .on_epoch = [](const EpochReport&) { return false; }});
  EXPECT_EQ(by_epoch.size(), 1U);
}

TEST(Trainer, CallbacksHearOfAnyException) {
  class Listener : public Callback {
   public:
    void on_end(graft::Run& /*run*/) override { heard = "the end"; }
    void on_error(graft::Run& /*run*/, const Error& error) override { heard = error.what(); }
    std::string heard;
  };
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, options());
  DataLoader loader(separable(), {.batch = 16});
  const auto listener = std::make_shared<Listener>();
  const auto on_step = [](const Progress&) -> bool { throw std::runtime_error("no more"); };
  EXPECT_THROW(trainer.fit(loader, {.on_step = on_step, .callbacks = {listener}}),
               std::runtime_error);
  EXPECT_EQ(listener->heard, "no more");
  const auto throws_number = [](const Progress&) -> bool { throw 7; };
  EXPECT_THROW(trainer.fit(loader, {.on_step = throws_number, .callbacks = {listener}}), int);
  EXPECT_EQ(listener->heard, "an exception that is no std::exception");
}

/// Labels 0, 0 | 1, 0 in batches of two, of which 0 is ignored.
TEST(Trainer, AnEpochsAccuracyIsOfWhatWasJudged) {
  Model model = test::linear_model();
  model.graph().find("w")->initializer().copy_from(Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  model.graph().find("b")->initializer().copy_from(Tensor::from<float>({2}, {0, 0}));
  Loss loss = cross_entropy();
  loss.ignore_index = 0;
  loss.reduction = Reduction::sum;
  Trainer trainer(model, {.loss = loss, .optimizer = SGD{.lr = 0.0F}});
  DataLoader loader(tensor_dataset({{"x", Tensor::from<float>({4, 2}, {0, 1, 0, 1, 0, 1, 2, 0})}},
                                   {"y", Tensor::from<std::int64_t>({4}, {0, 0, 1, 0})}),
                    {.batch = 2});
  const EpochReport report = trainer.fit(loader, {.validation = &loader}).front();
  EXPECT_EQ(report.accuracy, 1.0);
  EXPECT_EQ(report.validation->accuracy, 1.0);
  EXPECT_EQ(report.validation->judged, 1);
}

TEST(Trainer, ADivergingLossIsANumericError) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, {.optimizer = SGD{.lr = 1e30F}});
  DataLoader loader(separable(), {.batch = 60});
  try {
    trainer.fit(loader, {.epochs = 10});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_THAT(error.what(), testing::HasSubstr("the loss is"));
  }
}

TEST(Trainer, AnUpdateThatSpoilsTheNetIsFoundWhenItIsMeasured) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, {.optimizer = SGD{.lr = 1e30F}});
  DataLoader loader(separable(), {.batch = 60});
  try {
    trainer.fit(loader, {.epochs = 1, .validation = &loader});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_THAT(error.what(), testing::HasSubstr("after 1 updates"));
  }
}

TEST(Trainer, ParametersThatTheLastUpdateLostAreANumericError) {
  Model model = test::linear_model();
  const auto data = tensor_dataset({{"x", Tensor::full(DType::f32, {2, 2}, 1e20)}},
                                   {"y", Tensor::from<std::int64_t>({2}, {0, 1})});
  DataLoader loader(data, {.batch = 2});
  Trainer trainer(model, {.optimizer = SGD{.lr = 1e30F}});
  bool is_told = false;
  const auto on_epoch = [&](const EpochReport&) { return is_told = true; };
  try {
    trainer.fit(loader, {.epochs = 1, .on_epoch = on_epoch});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_THAT(error.what(), testing::HasSubstr("parameter 'w' holds numbers that are not finite "
                                                 "after 1 updates"));
  }
  EXPECT_FALSE(is_told);
}

/// Scores (0,1), (2,0) against labels 1, 1: one of two is right; loss = mean(log(1+e^-1),
/// log(1+e^2)) = (0.3132617 + 2.1269280) / 2.
TEST(Evaluator, MeasuresLossAndAccuracyByHand) {
  Model model = test::linear_model();
  model.graph().find("w")->initializer().copy_from(Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  model.graph().find("b")->initializer().copy_from(Tensor::from<float>({2}, {0, 0}));
  DataLoader loader(tensor_dataset({{"x", Tensor::from<float>({2, 2}, {0, 1, 2, 0})}},
                                   {"y", Tensor::from<std::int64_t>({2}, {1, 1})}),
                    {.batch = 1});
  const Evaluation result = Evaluator(model).run(loader);
  EXPECT_NEAR(result.loss, (0.3132617 + 2.1269280) / 2, 1e-6);
  EXPECT_EQ(result.accuracy, 0.5);
  EXPECT_EQ(result.samples, 2);
}

/// However the samples are put into batches, as by one batch: sums are divided by the samples,
/// means weighed by the targets that count.
TEST(Evaluator, TheLossDoesNotDependOnTheBatch) {
  Model model = test::linear_model();
  const auto data = tensor_dataset({{"x", test::random_tensor({7, 2}, 5)}},
                                   {"y", Tensor::from<std::int64_t>({7}, {0, 1, 1, 1, 0, 1, 1})});
  for (const bool is_sum : {false, true}) {
    Loss loss = cross_entropy();
    loss.reduction = is_sum ? Reduction::sum : Reduction::mean;
    loss.ignore_index = 0;
    const auto measured = [&](std::int64_t batch) {
      DataLoader loader(data, {.batch = batch});
      return Evaluator(model, {.loss = loss}).run(loader).loss;
    };
    EXPECT_NEAR(measured(2), measured(7), 1e-6);
    EXPECT_NEAR(measured(3), measured(7), 1e-6);
    EXPECT_NEAR(measured(1), measured(7), 1e-6);  // batches of which no target counts
    loss.ignore_index = {};
    loss.class_weights = {0.25F, 3};
    EXPECT_NEAR(measured(2), measured(7), 1e-6);
    loss.class_weights = {0, 3};
    EXPECT_NEAR(measured(1), measured(7), 1e-6);
  }
}

TEST(Evaluator, ABatchOfAProgramsOwnNeedsNoSize) {
  Model model = test::linear_model();
  Batch batch;
  batch.inputs = {test::random_tensor({3, 2}, 5)};
  batch.target = test::random_tensor({3, 2}, 6);
  Evaluator evaluator(model, {.loss = mse()});
  const Evaluation result = evaluator.run(batch);
  EXPECT_EQ(result.samples, 3);
  EXPECT_GT(result.loss, 0);
  batch.size = -1;
  EXPECT_THROW(evaluator.run(batch), Error);
}

TEST(Trainer, ABatchOfWhichNoTargetCountsIsNoFailure) {
  Model model = test::linear_model();
  const auto data = tensor_dataset({{"x", test::random_tensor({4, 2}, 5)}},
                                   {"y", Tensor::from<std::int64_t>({4}, {0, 0, 1, 0})});
  Loss loss = cross_entropy();
  loss.ignore_index = 0;
  Trainer trainer(model, {.loss = loss, .optimizer = SGD{.lr = 0.1F}});
  DataLoader loader(data, {.batch = 2});
  const EpochReport report = trainer.fit(loader).front();
  EXPECT_GT(report.loss, 0);
  EXPECT_EQ(report.samples, 4);
}

TEST(Trainer, RefusesNothingInPlaceOfACallback) {
  Model model = test::linear_model();
  Trainer trainer(model);
  DataLoader loader(separable(), {.batch = 4});
  EXPECT_THROW(trainer.fit(loader, {.callbacks = {nullptr}}), Error);
  EXPECT_THROW(trainer.add_metric(nullptr), Error);
}

TEST(Evaluator, MetricsLeaveOutWhatTheLossIgnores) {
  Model model = test::linear_model();
  model.graph().find("w")->initializer().copy_from(Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  model.graph().find("b")->initializer().copy_from(Tensor::from<float>({2}, {0, 0}));
  DataLoader loader(tensor_dataset({{"x", Tensor::from<float>({3, 2}, {0, 1, 0, 1, 2, 0})}},
                                   {"y", Tensor::from<std::int64_t>({3}, {0, 1, 1})}),
                    {.batch = 3});
  Loss loss = cross_entropy();
  loss.ignore_index = 0;
  Evaluator evaluator(model, {.loss = loss});
  evaluator.add_metric(metric_from_name("top1"));
  const Evaluation result = evaluator.run(loader);
  EXPECT_EQ(result.accuracy, 0.5);
  EXPECT_EQ(result.metrics.at(0).second, 0.5);
}

}  // namespace
}  // namespace graft
