#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

/// One channel, each row 0, 1, 2, 3.
Tensor columns() {
  return Tensor::from<float>({1, 1, 4, 4}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
}
Tensor region(std::initializer_list<float> numbers) {
  return Tensor::from<float>({1, static_cast<std::int64_t>(numbers.size())}, numbers);
}
Tensor image_0() {
  return Tensor::from<std::int64_t>({1}, {0});
}
Attributes two_columns() {
  return {{"output_height", 1}, {"output_width", 2}, {"sampling_ratio", 1}};
}

TEST(RoiAlign, SamplesCentresOfBins) {
  const Tensor whole = region({0, 0, 4, 4});
  EXPECT_THAT(floats(call_op("RoiAlign", {columns(), whole, image_0()}, two_columns())[0]),
              ElementsAre(0.5, 2.5));
  EXPECT_THAT(floats(call_old_op("RoiAlign", 10, {columns(), whole, image_0()}, two_columns())),
              ElementsAre(1, 3));
}

TEST(RoiAlign, AHugeOrMeaninglessRegionEnds) {
  for (const float far : {1e30F, NAN, INFINITY}) {
    const auto y = call_op("RoiAlign", {columns(), region({0, 0, far, far}), image_0()});
    EXPECT_EQ(y[0].size(), 1);
  }
}

TEST(RoiAlign, GradientGoesToTheFourNeighbours) {
  const Tensor dy = Tensor::from<float>({1, 1, 1, 2}, {4, 0});
  const auto dx = testing::rule_gradients(
      "RoiAlign", {columns(), region({0.5F, 0, 4.5F, 2}), image_0()}, dy, two_columns());
  EXPECT_THAT(floats(dx[0]), ElementsAre(0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(MaxRoiPool, TakesTheGreatestOfEachBin) {
  const Attributes size{{"pooled_shape", std::vector<std::int64_t>{1, 2}}};
  const Tensor whole = region({0, 0, 0, 2, 3});
  EXPECT_THAT(floats(call_op("MaxRoiPool", {columns(), whole}, size)[0]), ElementsAre(1, 2));
  const Tensor outside = region({0, 9, 9, 11, 11});
  EXPECT_THAT(floats(call_op("MaxRoiPool", {columns(), outside}, size)[0]), ElementsAre(0, 0));
  const Tensor dy = Tensor::from<float>({1, 1, 1, 2}, {3, 5});
  EXPECT_THAT(floats(testing::rule_gradients("MaxRoiPool", {columns(), whole}, dy, size)[0]),
              ElementsAre(0, 3, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(RoiAlign, RefusesWhatDoesNotFit) {
  const auto kind = [](const Tensor& x, const Tensor& rois, const Attributes& attributes = {}) {
    return kind_of([&] { call_op("RoiAlign", {x, rois, image_0()}, attributes); });
  };
  EXPECT_EQ(kind(columns(), region({0, 0, 1})), ErrorKind::shape);
  EXPECT_EQ(kind(columns(), region({0, 0, 1, 1}), {{"output_width", 0}}), ErrorKind::shape);
  EXPECT_EQ(kind(columns(), region({0, 0, 1, 1}), {{"sampling_ratio", -1}}), ErrorKind::shape);
  EXPECT_EQ(kind(columns(), region({0, 0, 1, 1}), {{"mode", "sum"}}), ErrorKind::model);
  EXPECT_EQ(kind(Tensor::zeros(DType::f32, {0, 1, 4, 4}), region({0, 0, 1, 1})), ErrorKind::shape);
  const Tensor two_regions = Tensor::zeros(DType::f32, {2, 4});
  EXPECT_EQ(kind(columns(), two_regions), ErrorKind::shape) << "one index for two regions";
}

TEST(Col2Im, AddsOverlappingBlocksUp) {
  const Tensor blocks = Tensor::from<float>({1, 2, 3}, {1, 2, 3, 10, 20, 30});
  const Tensor image = Tensor::from<std::int64_t>({1}, {4});
  const Tensor block = Tensor::from<std::int64_t>({1}, {2});
  EXPECT_THAT(floats(call_op("Col2Im", {blocks, image, block})[0]), ElementsAre(1, 12, 23, 30));
  const Tensor five = Tensor::from<std::int64_t>({1}, {5});
  EXPECT_EQ(kind_of([&] { call_op("Col2Im", {blocks, five, block}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
