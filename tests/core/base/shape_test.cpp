#include "core/base/shape.h"

#include <gtest/gtest.h>

#include "tests/core/error_of.h"

namespace graft {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 32;

TEST(Shape, ScalarHasOneElement) {
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(text(Shape()), "[]");
}

TEST(Shape, SizesAndStrides) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(shape.size(1, 3), 12);
  EXPECT_EQ(shape.size(1, 1), 1);
  EXPECT_EQ(shape.strides(), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(text(shape), "[2,3,4]");
}

TEST(Shape, RefusesNegativeDimsAndOverflow) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{kHuge, kHuge}), Error);
  EXPECT_EQ((Shape{kHuge, kHuge / 4}).size(), std::int64_t{1} << 62);
}

TEST(Shape, EmptyTensorsHaveSafePartialProducts) {
  const Shape shape{0, 3, 4};
  EXPECT_EQ(shape.size(), 0);
  EXPECT_EQ(shape.size(1, 3), 12);
  EXPECT_EQ((Shape{3, 0}).strides(), (std::vector<std::int64_t>{0, 1}));
  EXPECT_THROW((Shape{0, kHuge, kHuge}), Error);
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}, "add"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {5}, "add"), (Shape{5}));
  EXPECT_EQ(broadcast({1}, {0}, "add"), (Shape{0}));
  EXPECT_EQ(broadcast({0}, {1}, "add"), (Shape{0}));
}

TEST(Shape, BroadcastNamesTheAxisThatDoesNotFit) {
  const Error error = error_of([] { broadcast({2, 3}, {2}, "add"); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_STREQ(error.what(), "add: [2,3] and [2] do not broadcast (3 against 2 in axis 1)");
  EXPECT_THROW(broadcast({0}, {2}, "add"), Error);
}

TEST(Shape, NormalizesAxes) {
  EXPECT_EQ(normalize_axis(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_axis(-3, 3, "op"), 0);
  EXPECT_EQ(normalize_axis(2, 3, "op"), 2);
  EXPECT_THROW(normalize_axis(3, 3, "op"), Error);
  EXPECT_THROW(normalize_axis(-4, 3, "op"), Error);
  EXPECT_THROW(normalize_axis(0, 0, "op"), Error);
}

TEST(Shape, CheckedMultiply) {
  EXPECT_EQ(checked_multiply(kHuge, 3), 3 * kHuge);
  EXPECT_THROW(checked_multiply(kHuge, kHuge), Error);
}

}  // namespace
}  // namespace graft
