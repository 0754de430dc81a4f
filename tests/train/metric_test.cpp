#include "train/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::expect_error;

double measure(const std::string& name, const std::vector<std::pair<Tensor, Tensor>>& batches,
               int axis) {
  const auto metric = metric_from_name(name);
  metric->add(batches.front().first, batches.front().second, axis);
  metric->reset();
  EXPECT_TRUE(metric->values().empty());
  for (const auto& [prediction, target] : batches) metric->add(prediction, target, axis);
  const auto values = metric->values();
  EXPECT_EQ(values.size(), 1U);
  EXPECT_EQ(values.at(0).first, name);
  return values.at(0).second;
}

/// Predicted 0, 1, 1, 2 for true 0, 0, 1, 1; in two batches.
const std::vector<std::pair<Tensor, Tensor>>& classes() {
  static const std::vector<std::pair<Tensor, Tensor>> batches{
      {Tensor::from<float>({3, 3}, {9, 2, 1, 3, 4, 0, 1, 5, 1}),
       Tensor::from<std::int64_t>({3}, {0, 0, 1})},
      {Tensor::from<float>({1, 3}, {7, 1, 8}), Tensor::from<std::int64_t>({1}, {1})}};
  return batches;
}

TEST(Metric, CountsTheBestClasses) {
  EXPECT_DOUBLE_EQ(measure("top1", classes(), 1), 0.5);
  EXPECT_DOUBLE_EQ(measure("top2", classes(), 1), 0.75);
  EXPECT_DOUBLE_EQ(measure("top3", classes(), 1), 1.0);
}

/// Class 0: 1 of 1 predicted, 1 of 2 found; class 1: 1 of 2, 1 of 2; class 2: 0 of 1, none there.
TEST(Metric, MeansOverClassesThatOccur) {
  EXPECT_DOUBLE_EQ(measure("precision", classes(), 1), (1.0 + 0.5 + 0.0) / 3);
  EXPECT_DOUBLE_EQ(measure("recall", classes(), 1), (0.5 + 0.5 + 0.0) / 3);
  EXPECT_DOUBLE_EQ(measure("f1", classes(), 1), (2.0 / 3 + 0.5 + 0.0) / 3);
  EXPECT_DOUBLE_EQ(measure("mean_iou", classes(), 1), (0.5 + 1.0 / 3 + 0.0) / 3);
}

/// Two pixels a sample: [N,C,d].
TEST(Metric, ClassesMayStandInTheMidst) {
  const Tensor prediction = Tensor::from<double>({1, 2, 2}, {3, 1, 2, 4});
  ConfusionMatrix matrix;
  matrix.add(prediction, Tensor::from<std::int64_t>({1, 2}, {1, 1}), 1);
  matrix.add(prediction, Tensor::from<std::int64_t>({1, 2}, {-100, 1}), 1);
  EXPECT_EQ(matrix.classes(), 2);
  EXPECT_EQ(matrix.count(1, 0), 1);
  EXPECT_EQ(matrix.count(1, 1), 2);
  EXPECT_EQ(matrix.count(0, 0), 0);
  EXPECT_EQ(matrix.count(2, 0), 0) << "no such class";
  EXPECT_EQ(matrix.count(0, 3), 0);
  EXPECT_EQ(matrix.count(-1, 3), 0);
  EXPECT_EQ(ConfusionMatrix().count(0, 0), 0);
}

/// Errors 1, -1, 3 of 1, 2, 6: the mean is 3, squares about it 14, squared errors 11.
TEST(Metric, ErrorsOfNumbers) {
  const std::vector<std::pair<Tensor, Tensor>> batches{
      {Tensor::from<float>({2, 1}, {2, 1}), Tensor::from<float>({2, 1}, {1, 2})},
      {Tensor::from<float>({1, 1}, {9}), Tensor::from<float>({1, 1}, {6})}};
  EXPECT_DOUBLE_EQ(measure("mae", batches, -1), 5.0 / 3);
  EXPECT_DOUBLE_EQ(measure("rmse", batches, -1), std::sqrt(11.0 / 3));
  EXPECT_DOUBLE_EQ(measure("r2", batches, -1), 1.0 - 11.0 / 14);
}

/// Best labels 0 1 1 0 1 2 read as 1 1 2, for 1 2: one deletion of two labels.
TEST(Metric, EditsBetweenSequences) {
  const Tensor prediction =
      Tensor::from<float>({6, 1, 3}, {9, 0, 0, 0, 9, 0, 0, 9, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9});
  EXPECT_DOUBLE_EQ(
      measure("edit_distance", {{prediction, Tensor::from<std::int64_t>({1, 3}, {1, 2, -1})}}, 2),
      0.5);
}

TEST(Metric, SequencesMayBeSeparatedByAnotherClass) {
  const Tensor prediction = Tensor::from<float>({3, 1, 3}, {9, 0, 0, 0, 0, 9, 0, 9, 0});
  const auto metric = metric_from_name("edit_distance", 2);
  metric->add(prediction, Tensor::from<std::int64_t>({1, 2}, {0, 1}), 2);
  EXPECT_EQ(metric->values().at(0).second, 0.0);
}

/// Labels that are no classes are not counted, also where there is no class at all.
TEST(Metric, NoClasses) {
  ConfusionMatrix matrix;
  matrix.add(Tensor::zeros(DType::f32, {2, 0, 0}), Tensor::from<std::int64_t>({2}, {0, 1}), 1);
  EXPECT_EQ(matrix.classes(), 0);
}

TEST(Metric, RefusesClassesThatItHasNoRoomFor) {
  ConfusionMatrix matrix;
  const auto add = [&](std::int64_t classes, std::int64_t label) {
    matrix.add(Tensor::zeros(DType::f32, {1, classes}), Tensor::from<std::int64_t>({1}, {label}),
               1);
  };
  expect_error(ErrorKind::unsupported, "a table of 100000 x 100000 entries",
               [&] { add(100000, 0); });
  add(2, 1);
  expect_error(ErrorKind::shape, "of 300 classes behind some of 2", [&] { add(300, 299); });
}

TEST(Metric, RefusesWhatItDoesNotMeasure) {
  const Tensor numbers = Tensor::zeros(DType::f32, {2, 3});
  expect_error(ErrorKind::argument, "the loss has none",
               [&] { metric_from_name("f1")->add(numbers, numbers, -1); });
  expect_error(ErrorKind::argument, "measures numbers",
               [&] { metric_from_name("mae")->add(numbers, Tensor::zeros(DType::i64, {2}), 1); });
  expect_error(ErrorKind::shape, "wanted [T,B,C]",
               [&] { metric_from_name("edit_distance")->add(numbers, numbers, -1); });
  for (const char* name : {"top0", "top", "topx", "acc"}) {
    expect_error(ErrorKind::argument, "valid: top5, precision", [&] { metric_from_name(name); });
  }
}

}  // namespace
}  // namespace graft
