#include <gtest/gtest.h>

#include <limits>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

std::int64_t count(const Tensor& scores, const Tensor& target, std::int64_t axis,
                   std::int64_t ignored = -1) {
  const Tensor y = testing::call_internal_op("CountCorrect", {scores, target},
                                             {{"axis", axis}, {"ignore_index", ignored}})[0];
  EXPECT_EQ(y.shape(), Shape{});
  return y.values<const std::int64_t>()[0];
}

TEST(CountCorrect, CountsTargetsThatHaveTheFirstLargestScore) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor scores = Tensor::from<float>({4, 3}, {1, 3, 2, 5, 5, 0, 0, kNan, 9, -3, -2, -1});
  EXPECT_EQ(count(scores, Tensor::from<std::int64_t>({4}, {1, 0, 1, 2}), 1), 4);
  EXPECT_EQ(count(scores, Tensor::from<std::int64_t>({4}, {1, 1, 2, 2}), -1), 2);
  EXPECT_EQ(count(scores, Tensor::from<std::int64_t>({4}, {-100, 3, 0, 0}), 1), 0);
  EXPECT_EQ(count(scores, Tensor::from<std::int64_t>({3}, {1, 1, 2}), 0), 2);
  EXPECT_EQ(count(scores, Tensor::from<std::int64_t>({4}, {1, 0, 1, 2}), 1, 1), 2);
}

TEST(CountCorrect, RefusesTargetsOfAnotherShape) {
  const Tensor scores = Tensor::zeros(DType::f32, {4, 3});
  const Tensor target = Tensor::zeros(DType::i64, {3});
  EXPECT_EQ(kind_of([&] { count(scores, target, 1); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] {
              count(Tensor::zeros(DType::f32, {4, 0}), target, 1);
            }),
            ErrorKind::shape);
}

}  // namespace
}  // namespace graft
