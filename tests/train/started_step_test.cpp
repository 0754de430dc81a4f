#include <gtest/gtest.h>

#include "core/layers/nets.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/evaluator.h"
#include "train/train_step.h"

namespace graft {
namespace {

const Shape kImages{30, 1, 2, 2};

TEST(StartedStep, EachKeepsItsOwnNumbers) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  Model same = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  TrainStep step(model, {.counts_correct = true});
  TrainStep plain(same, {});
  const Tensor labels = test::cyclic_labels(30, 3);
  std::vector<StartedStep> started;
  std::vector<float> losses;
  std::vector<std::int64_t> correct;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Tensor images = test::random_tensor(kImages, seed);
    started.push_back(step.start({images}, labels));
    losses.push_back(plain.run({images}, labels));
    correct.push_back(count_correct(plain.prediction(), labels, 1));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(static_cast<float>(started[i].loss()), losses[i]);
    EXPECT_EQ(started[i].correct(), correct[i]);
  }
}

TEST(StartedStep, CountsWhereItIsAskedToAndTargetsAreClasses) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  const Tensor images = test::random_tensor(kImages, 1);
  TrainStep unasked(model, {});
  EXPECT_EQ(unasked.start({images}, test::cyclic_labels(30, 3)).correct(), std::nullopt);
  TrainStep of_numbers(model, {.loss = mse(), .counts_correct = true});
  EXPECT_EQ(of_numbers.start({images}, Tensor::zeros(DType::f32, {30, 3})).correct(), std::nullopt);
}

TEST(StartedStep, CountsNoTargetThatTheLossLeavesOut) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  const Tensor images = test::random_tensor(kImages, 1);
  std::int64_t hits = 0;
  for (const std::int64_t ignored : {0, 1, 2}) {  // each class once, of predictions that stay
    Loss loss = cross_entropy();
    loss.ignore_index = ignored;
    TrainStep step(model, {.loss = loss, .optimizer = std::nullopt, .counts_correct = true});
    hits += step.start({images}, test::cyclic_labels(30, 3)).correct().value();
  }
  TrainStep all(model, {.optimizer = std::nullopt, .counts_correct = true});
  EXPECT_EQ(hits, 2 * all.start({images}, test::cyclic_labels(30, 3)).correct().value());
}

TEST(StartedStep, OutlivesItsTrainStep) {
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  const auto start = [&] {
    TrainStep step(model, {});
    return step.start({test::random_tensor(kImages, 1)}, test::cyclic_labels(30, 3));
  };
  EXPECT_GT(start().loss(), 0.0);
}

TEST(CountCorrect, RefusesWhatItCannotCount) {
  const Tensor scores = Tensor::zeros(DType::f32, {4, 3});
  const Tensor labels = Tensor::zeros(DType::i64, {4});
  EXPECT_EQ(count_correct(scores, labels, 1), 4);
  const auto refused = [&](ErrorKind kind, std::string_view part, const Tensor& prediction,
                           const Tensor& target, int axis) {
    testing::expect_error(kind, part, [&] { count_correct(prediction, target, axis); });
  };
  refused(ErrorKind::type, "wanted f32 or f64", scores.cast(DType::f16), labels, 1);
  refused(ErrorKind::type, "class indices i64", scores, labels.cast(DType::f32), 1);
  refused(ErrorKind::shape, "wanted 4 class indices", scores, Tensor::zeros(DType::i64, {5}), 1);
  refused(ErrorKind::argument, "axis of classes is 2", scores, labels, 2);
  refused(ErrorKind::argument, "axis of classes is -1", scores, labels, -1);
  refused(ErrorKind::argument, "the prediction is undefined", Tensor(), labels, 1);
  refused(ErrorKind::argument, "the target is undefined", scores, Tensor(), 1);
}

}  // namespace
}  // namespace graft
