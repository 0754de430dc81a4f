#include <gmock/gmock.h>

#include "core/ops/image/grid_sample.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using testing::floats;

/// 1, 2, 3, 4 in a line.
Tensor line() {
  return Tensor::from<float>({1, 1, 4}, {1, 2, 3, 4});
}
std::vector<float> sample(const std::vector<float>& grid, const Attributes& attributes = {}) {
  const Tensor places = Tensor::from<float>({1, static_cast<std::int64_t>(grid.size()), 1}, grid);
  return floats(call_op("GridSample", {line(), places}, attributes)[0]);
}

TEST(GridSample, EndsOfTheGridAreBordersOrCentres) {
  EXPECT_THAT(sample({-0.75F, 0.0F, 0.75F}), ElementsAre(1, 2.5, 4));
  EXPECT_THAT(sample({-1.0F, 0.0F, 1.0F}, {{"align_corners", 1}}), ElementsAre(1, 2.5, 4));
}

TEST(GridSample, Paddings) {
  // Positions -0.5, -1 and 5.
  const std::vector<float> outside{-1.0F, -1.25F, 1.75F};
  EXPECT_THAT(sample(outside), ElementsAre(0.5, 0, 0));
  EXPECT_THAT(sample(outside, {{"padding_mode", "border"}}), ElementsAre(1, 1, 4));
  EXPECT_THAT(sample(outside, {{"padding_mode", "reflection"}}), ElementsAre(1, 1, 3));
  EXPECT_THAT(sample({NAN}), ElementsAre(0));
  EXPECT_THAT(sample({INFINITY, -1e30F}, {{"padding_mode", "border"}}), ElementsAre(4, 1));
}

/// As a float the last of these places is 16777220.
TEST(GridSample, TheBorderOfALongAxisIsItsLastElement) {
  Graph graph;
  const Node& node = *graph.add_node("GridSample", "", {}, {"y"}, {{"padding_mode", "border"}});
  const GridTaps<float> taps = grid_taps(GridSampler(node), 2.0F, 16777220);
  EXPECT_EQ(taps.index[0], 16777219);
  EXPECT_EQ(taps.index[1], 16777219);
}

TEST(GridSample, NearestRoundsHalvesToEven) {
  EXPECT_THAT(sample({-0.5F, 0.0F, 0.5F}, {{"mode", "nearest"}}), ElementsAre(1, 3, 3));
}

TEST(GridSample, CubicBetweenTheMiddleElements) {
  // (2 + 3) * 0.59375 - (1 + 4) * 0.09375
  EXPECT_THAT(sample({0.0F}, {{"mode", "cubic"}}), ElementsAre(2.5));
}

TEST(GridSample, TheFirstNumberIsTheColumn) {
  const Tensor image = Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor grid = Tensor::from<float>({1, 1, 1, 2}, {0.5F, -0.5F});
  EXPECT_THAT(floats(call_op("GridSample", {image, grid})[0]), ElementsAre(2));
  EXPECT_THAT(floats(call_old_op("GridSample", 16, {image, grid}, {{"mode", "bilinear"}})),
              ElementsAre(2));
}

TEST(GridSample, GradientIsZeroWhereTheBorderHolds) {
  const Tensor grid = Tensor::from<float>({1, 2, 1}, {0.0F, 1.5F});
  const Tensor dy = Tensor::from<float>({1, 1, 2}, {1, 10});
  const auto gradients =
      testing::rule_gradients("GridSample", {line(), grid}, dy, {{"padding_mode", "border"}});
  EXPECT_THAT(floats(gradients[0]), ElementsAre(0, 0.5, 0.5, 10));
  EXPECT_THAT(floats(gradients[1]), ElementsAre(2, 0));
}

TEST(GridSample, RefusesWhatDoesNotFit) {
  const auto kind = [](const Shape& x, const Shape& grid, const Attributes& attributes = {}) {
    return kind_of([&] {
      call_op("GridSample", {Tensor::zeros(DType::f32, x), Tensor::zeros(DType::f32, grid)},
              attributes);
    });
  };
  EXPECT_EQ(kind({1, 1, 4}, {1, 2, 2}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 1, 4}, {2, 2, 1}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 1, 0}, {1, 2, 1}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 1, 4}, {1, 2, 1}, {{"mode", "quadratic"}}), ErrorKind::model);
  EXPECT_EQ(kind({1, 1, 4}, {1, 2, 1}, {{"padding_mode", "wrap"}}), ErrorKind::model);
}

TEST(AffineGrid, OfAShiftedIdentity) {
  const Tensor theta = Tensor::from<float>({1, 2, 3}, {1, 0, 0.5F, 0, 1, 0});
  const Tensor size = Tensor::from<std::int64_t>({4}, {1, 1, 1, 2});
  EXPECT_THAT(floats(call_op("AffineGrid", {theta, size})[0]), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(floats(call_op("AffineGrid", {theta, size}, {{"align_corners", 1}})[0]),
              ElementsAre(-0.5, -1, 1.5, -1));
}

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  std::vector<float> numbers(60);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * i % 17);
  const Tensor x = Tensor::from<float>({1, 3, 4, 5}, numbers);
  const Tensor w = Tensor::from<float>({2, 3, 2, 2}, std::span<const float>(numbers.data(), 24));
  const Tensor offset = Tensor::zeros(DType::f32, {1, 8, 4, 4});
  const Attributes window{{"pads", std::vector<std::int64_t>{1, 0, 0, 0}}};
  const std::vector<float> wanted = floats(call_op("Conv", {x, w}, window)[0]);
  const std::vector<float> found = floats(call_op("DeformConv", {x, w, offset}, window)[0]);
  EXPECT_THAT(found, ::testing::Pointwise(::testing::FloatNear(1e-3F), wanted));
}

/// A grid from -1 to 1 has no room for places between elements of an image as wide.
TEST(DeformConv, PlacesInWideImagesAreExact) {
  constexpr std::size_t kWidth = 2000;
  std::vector<float> numbers(kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) numbers[i] = static_cast<float>(i * i % 17);
  const Shape row{1, 1, 1, kWidth};
  const auto shifted = [&](float by) {
    std::vector<float> offsets(2 * kWidth, 0.0F);
    std::fill(offsets.begin() + kWidth, offsets.end(), by);
    return floats(call_op(
        "DeformConv", {Tensor::from<float>(row, numbers), Tensor::full(DType::f32, {1, 1, 1, 1}, 1),
                       Tensor::from<float>({1, 2, 1, kWidth}, offsets)})[0]);
  };
  EXPECT_EQ(shifted(0.0F), numbers);
  const std::vector<float> halfway = shifted(0.5F);
  for (std::size_t i = 0; i + 1 < kWidth; ++i) {
    EXPECT_EQ(halfway[i], (numbers[i] + numbers[i + 1]) / 2) << i;
  }
}

/// Offsets of 0, with which training begins: the slope towards the next element, as in PyTorch.
TEST(DeformConv, SlopesAtElements) {
  const auto gradients = testing::call_internal_op(
      "GridSampleGrad",
      {Tensor::from<float>({1, 1, 5}, {1, 2, 4, 8, 16}),
       Tensor::from<float>({1, 4, 1}, {0, 1, 2, 3}), Tensor::full(DType::f32, {1, 1, 4}, 1)},
      {{"in_pixels", 1}}, 2);
  EXPECT_THAT(floats(gradients[1]), ElementsAre(1, 2, 4, 8));
}

TEST(DeformConv, RefusesWhatDoesNotFit) {
  const auto kind = [](const Shape& w, const Shape& offset, const Attributes& attributes = {}) {
    return kind_of([&] {
      call_op("DeformConv",
              {Tensor::zeros(DType::f32, {1, 4, 3, 3}), Tensor::zeros(DType::f32, w),
               Tensor::zeros(DType::f32, offset)},
              attributes);
    });
  };
  EXPECT_EQ(kind({1, 4, 2, 2}, {1, 6, 2, 2}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 3, 2, 2}, {1, 8, 2, 2}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 4, 4, 4}, {1, 32, 1, 1}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 4, 2, 2}, {1, 8, 2, 2}, {{"group", 0}}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 4, 2, 2}, {1, 8, 2, 2}, {{"offset_group", 3}}), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
