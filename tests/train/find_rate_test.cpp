#include "train/find_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/joint_loss.h"
#include "core/layers/nets.h"
#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

std::shared_ptr<const Dataset> zeros() {
  return tensor_dataset({{"x", test::random_tensor({20, 2}, 5)}},
                        {"y", Tensor::zeros(DType::f32, {20, 2})});
}

/// Gradient descent on a parabola of curvature about 1 diverges above rate 2.
TEST(FindRate, EndsBelowWhatDivergesAndChangesNothing) {
  Model model = test::linear_model();
  const std::vector<Tensor> before = test::snapshot(model);
  Trainer trainer(model, {.loss = mse(), .optimizer = SGD{.lr = 0.3F, .momentum = 0.5F}});
  DataLoader loader(zeros(), {.batch = 20});
  const RateFound found = find_rate(trainer, loader, {.lowest = 1e-3F, .highest = 1e3F});
  EXPECT_GT(found.rate, 0.01F);
  EXPECT_LT(found.rate, 1.0F);
  EXPECT_LT(found.tried.size(), 100U);
  EXPECT_FLOAT_EQ(found.tried.front().first, 1e-3F);
  const std::vector<Tensor> after = test::snapshot(model);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(equal_bits(before[i], after[i]));
  EXPECT_EQ(trainer.train_step().updates(), 0);
  EXPECT_FLOAT_EQ(trainer.train_step().learning_rate(), 0.3F);
  EXPECT_EQ(loader.epoch(), 0);
}

TEST(FindRate, ATrainerIsAsItWasBehindABatchThatDoesNotFit) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  const std::vector<Tensor> before = test::snapshot(model);
  Tensor labels = Tensor::zeros(DType::i64, {20});
  labels.values<std::int64_t>()[19] = 2;
  DataLoader loader(tensor_dataset({{"x", test::random_tensor({20, 1, 2, 2}, 5)}}, {"y", labels}),
                    {.batch = 10});
  Trainer trainer(model);
  testing::expect_error(ErrorKind::argument, "class index 2", [&] { find_rate(trainer, loader); });
  const std::vector<Tensor> after = test::snapshot(model);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(equal_bits(before[i], after[i]));
  EXPECT_EQ(trainer.train_step().updates(), 0);
  EXPECT_EQ(loader.epoch(), 0);
}

/// The second target is of another type than the first.
TEST(FindRate, JudgesAllTargets) {
  Model model = test::linear_model();
  model.graph().add_output(
      model.graph().add_node("Neg", "", {model.graph().outputs()[0]}, {"n"})->output());
  model.graph().outputs()[1]->set_type(model.graph().outputs()[0]->type());
  const std::string first = model.graph().outputs()[0]->name();
  Trainer trainer(model,
                  {.loss = sum_of({{first, cross_entropy()}, {"n", mse()}}), .optimizer = SGD{}});
  const std::vector<NamedSamples> further{{"z", Tensor::zeros(DType::f32, {20, 2})}};
  DataLoader loader(tensor_dataset({{"x", test::random_tensor({20, 2}, 5)}},
                                   {"y", Tensor::zeros(DType::i64, {20})}, 0, further),
                    {.batch = 20});
  EXPECT_GT(find_rate(trainer, loader).rate, 0.0F);
}

TEST(FindRate, RefusesSearchesThatMakeNoSense) {
  Model model = test::linear_model();
  Trainer trainer(model, {.loss = mse()});
  DataLoader loader(zeros(), {.batch = 20});
  for (const RateSearch& search :
       {RateSearch{.lowest = 0.0F}, RateSearch{.lowest = 20.0F}, RateSearch{.steps = 1}}) {
    testing::expect_error(ErrorKind::argument, "wanted two rates",
                          [&] { find_rate(trainer, loader, search); });
  }
}

TEST(FindRate, NeedsAnOptimizerAndTheConstantSchedule) {
  DataLoader loader(zeros(), {.batch = 20});
  const auto refused = [&](const TrainOptions& options, std::string_view part) {
    Model model = test::linear_model();
    Trainer trainer(model, options);
    testing::expect_error(ErrorKind::argument, part, [&] { find_rate(trainer, loader); });
  };
  refused({.loss = mse(), .optimizer = std::nullopt}, "has no optimizer");
  refused({.loss = mse(), .schedule = exponential_lr(0.9F)}, "wanted the constant one");
  refused({.loss = mse(), .schedule = with_warmup(constant_lr(), 9)}, "without warm-up");
  refused({.loss = mse(), .groups = {{.pattern = "b", .schedule = exponential_lr(0.9F)}}},
          "the rate of 'b' has a schedule");
}

/// Of the two batches, no target of the first counts; of the other data, none at all.
TEST(FindRate, LeavesOutBatchesThatCountForNothing) {
  Loss loss = cross_entropy();
  loss.ignore_index = 1;
  Tensor labels = Tensor::zeros(DType::i64, {20});
  std::ranges::fill(labels.values<std::int64_t>().first(10), 1);
  const auto images = test::random_tensor({20, 1, 2, 2}, 5);
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, {.loss = loss});
  DataLoader loader(tensor_dataset({{"x", images}}, {"y", labels}), {.batch = 10});
  const RateFound found =
      find_rate(trainer, loader, {.lowest = 1e-4F, .highest = 1e-3F, .steps = 3});
  EXPECT_EQ(found.tried.size(), 3U);
  std::ranges::fill(labels.values<std::int64_t>(), 1);
  DataLoader none(tensor_dataset({{"x", images}}, {"y", labels}), {.batch = 10});
  testing::expect_error(ErrorKind::numeric, "the first loss is not finite",
                        [&] { find_rate(trainer, none); });
}

}  // namespace
}  // namespace graft
