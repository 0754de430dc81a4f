#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;

// Mean 2, variance 1 (of the population).
Tensor pair() {
  return Tensor::from<float>({1, 2}, {1, 3});
}

const Attributes kNoEpsilon{{"epsilon", AttributeValue(0.0F)}};

TEST(LayerNorm, UsesThePopulationVariance) {
  const std::vector<Tensor> y =
      call_op("LayerNormalization",
              {pair(), Tensor::from<float>({2}, {10, 20}), Tensor::from<float>({2}, {1, 2})},
              kNoEpsilon, 3);
  EXPECT_THAT(floats(y[0]), ElementsAre(-9, 22));
  EXPECT_EQ(y[1].shape(), (Shape{1, 1}));
  EXPECT_THAT(floats(y[1]), ElementsAre(2));
  EXPECT_THAT(floats(y[2]), ElementsAre(1));
}

/// 64 numbers round 10^7, where those of f32 are 1 apart; their mean is no f32 number.
Tensor far_row(DType dtype) {
  std::vector<double> row;
  for (int i = 0; i < 64; ++i) row.push_back(1e7 + i * i % 13 - (i % 3 == 0 ? 5 : 0));
  return Tensor::from<double>({1, 64}, row).cast(dtype);
}

/// Of f32 against f64, whose digits are enough.
TEST(LayerNorm, AMeanOfTenMillionCostsNoDigits) {
  const auto normalized = [](DType dtype) {
    const Tensor ones = Tensor::full(dtype, {64}, 1);
    return to_double(call_op("LayerNormalization", {far_row(dtype), ones, ones})[0]);
  };
  const auto gradients = [](DType dtype) {
    const Tensor dy = call_op("Sub", {far_row(dtype), Tensor::full(dtype, {1}, 1e7)})[0];
    std::vector<double> all;
    for (const Tensor& one : call_internal_op(
             "LayerNormGrad", {dy, far_row(dtype), Tensor::full(dtype, {64}, 1)}, {}, 3)) {
      for (const double number : to_double(one)) all.push_back(number);
    }
    return all;
  };
  EXPECT_THAT(normalized(DType::f32),
              ::testing::Pointwise(::testing::DoubleNear(1e-5), normalized(DType::f64)));
  EXPECT_THAT(gradients(DType::f32),
              ::testing::Pointwise(::testing::DoubleNear(1e-4), gradients(DType::f64)));
}

TEST(LayerNorm, EpsilonStandsUnderTheRoot) {
  const std::vector<Tensor> y = call_op("LayerNormalization", {pair(), Tensor::scalar(1.0F)},
                                        {{"epsilon", AttributeValue(3.0F)}}, 3);
  EXPECT_THAT(floats(y[0]), ElementsAre(-0.5F, 0.5F));
  EXPECT_THAT(floats(y[2]), ElementsAre(0.5F));
}

TEST(LayerNorm, MomentsHaveTheStashType) {
  const std::vector<Tensor> y = call_op("LayerNormalization", {pair(), Tensor::scalar(1.0F)},
                                        {{"stash_type", static_cast<int>(DType::bf16)}}, 3);
  EXPECT_EQ(y[1].dtype(), DType::bf16);
  EXPECT_EQ(to_double(y[1]), std::vector<double>{2});
}

TEST(LayerNorm, KeepsTheDigitsOfRowsFarFromZero) {
  const Tensor x = Tensor::from<float>({1, 4}, {100001, 100003, 100001, 100003});
  EXPECT_THAT(floats(call_op("LayerNormalization", {x, Tensor::scalar(1.0F)}, kNoEpsilon)[0]),
              ElementsAre(-1, 1, -1, 1));
}

TEST(LayerNorm, RefusesAScaleThatDoesNotBroadcastToX) {
  const Tensor scale = Tensor::from<float>({3}, {1, 1, 1});
  EXPECT_EQ(error_of([&] {
              call_op("LayerNormalization", {pair(), scale});
            }).kind(),
            ErrorKind::shape);
  const Tensor larger = Tensor::from<float>({2, 1}, {1, 1});
  EXPECT_EQ(error_of([&] {
              call_op("LayerNormalization", {pair(), larger});
            }).kind(),
            ErrorKind::shape);
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 7});  // mean square 25
  const Tensor y =
      call_op("RMSNormalization", {x, Tensor::from<float>({2}, {1, 10})}, kNoEpsilon)[0];
  EXPECT_THAT(floats(y), ElementsAre(FloatEq(0.2F), FloatEq(14)));
}

// Rows (1, 3) and (5, 3): h = (-1, 1) and (1, -1); dscale = sum dy h, dbias = sum dy.
TEST(LayerNormGrad, AddsOverRows) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 3, 5, 3});
  const Tensor dy = Tensor::from<float>({2, 2}, {2, 3, 10, 20});
  const std::vector<Tensor> d =
      call_internal_op("LayerNormGrad", {dy, x, Tensor::from<float>({2}, {1, 1})}, kNoEpsilon, 3);
  EXPECT_THAT(floats(d[1]), ElementsAre(8, -17));
  EXPECT_THAT(floats(d[2]), ElementsAre(12, 23));
  // Two elements lie on a line: their normalized values do not change with x.
  EXPECT_THAT(floats(d[0]), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace graft
