#include "core/ops/conv/conv_patterns.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/ops/conv/conv_stretches.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::OneNode;
using Ints = std::vector<std::int64_t>;

/// 2 channels to 3, images of 4x4, 3x3 taps with padding.
ConvGeometry padded(std::int64_t batch, std::int64_t stride = 1) {
  const Shape x{batch, 2, 4, 4};
  const Shape w{3, 2, 3, 3};
  const std::int64_t size = 4 / stride;
  const OneNode one("Conv", "", {Tensor::full(DType::f32, x, 0), Tensor::full(DType::f32, w, 0)}, 1,
                    {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{stride, stride}}});
  return {*one.node, x, w, Shape{batch, 3, size, size}};
}

std::size_t count_meetings(const std::vector<ConvPattern>& patterns) {
  std::size_t count = 0;
  for (const ConvPattern& pattern : patterns) count += pattern.taps.size() * pattern.places.size();
  return count;
}

TEST(ConvPatterns, TellCornersEdgesAndTheInnerPart) {
  const auto patterns = find_patterns(padded(2), ConvDirection::forward, 2);
  std::vector<std::pair<std::size_t, std::size_t>> found;  // taps, places
  for (const ConvPattern& pattern : patterns) {
    found.emplace_back(pattern.taps.size(), pattern.places.size());
  }
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAreArray(std::vector<std::pair<std::size_t, std::size_t>>{
                  {4, 2}, {4, 2}, {4, 2}, {4, 2}, {6, 4}, {6, 4}, {6, 4}, {6, 4}, {9, 8}}));
}

TEST(ConvPatterns, TheInputGradientMeetsWhatTheConvolutionMeets) {
  for (const std::int64_t stride : {1, 2}) {
    const ConvGeometry geometry = padded(1, stride);
    const auto forward = find_patterns(geometry, ConvDirection::forward, 1);
    const auto backward = find_patterns(geometry, ConvDirection::input_grad, 1);
    EXPECT_EQ(count_meetings(forward), stride == 1 ? 100U : 25U);
    EXPECT_EQ(count_meetings(backward), count_meetings(forward));
  }
}

TEST(ConvPatterns, TheFirstCornerOfTheSecondImageStandsBehindTheFirstImage) {
  const auto patterns = find_patterns(padded(2), ConvDirection::forward, 2);
  const auto corner = std::ranges::find_if(
      patterns, [](const ConvPattern& pattern) { return pattern.places.front().target == 0; });
  ASSERT_NE(corner, patterns.end());
  EXPECT_EQ(corner->places[1].source, 32);
  EXPECT_EQ(corner->places[1].target, 48);
  // By taps (1,1), (1,2), (2,1) and (2,2).
  EXPECT_EQ(corner->taps, (std::vector<TapShift>{{4, 0}, {5, 2}, {7, 8}, {8, 10}}));
}

TEST(ConvStretches, MeetAsManyPositionsHoweverTheyAreCut) {
  const ConvGeometry geometry = padded(3);
  for (const std::int64_t positions : {1, 13, 16, 32, 1000}) {
    std::size_t count = 0;
    for (const Stretch& stretch : cut_into_stretches(geometry, positions, {2, 3, 5})) {
      for (std::int64_t run = 0; run < stretch.meetings->runs(); ++run) {
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          for (const Meeting& meeting : stretch.meetings->of(run, tap)) {
            EXPECT_GE(meeting.x, 0);
            EXPECT_LT(meeting.x, 2 * stretch.x_count);
            ++count;
          }
        }
      }
    }
    EXPECT_EQ(count, 300U) << positions << " positions";
  }
}

TEST(ConvStretches, InnerRowsShareTheirMeetings) {
  const auto stretches = cut_into_stretches(padded(2), 12, {2, 3, 128});
  ASSERT_EQ(stretches.size(), 8U);  // a row each
  EXPECT_EQ(stretches[1].meetings, stretches[2].meetings);
  EXPECT_EQ(stretches[1].meetings, stretches[6].meetings);
  EXPECT_NE(stretches[0].meetings, stretches[1].meetings);
  EXPECT_EQ(stretches[2].x_first, 4);
  EXPECT_EQ(stretches[2].x_count, 12);
  EXPECT_EQ(stretches[2].y_first, 8);
}

}  // namespace
}  // namespace graft
