#include "core/ops/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace graft::vector_math {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The largest error on a grid, in units of 2^-24 times the result: halves of the last place.
template <class Fast, class Exact>
double worst_error(float low, float high, Fast fast, Exact exact) {
  constexpr int kPoints = 200000;
  double worst = 0.0;
  for (int i = 0; i <= kPoints; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kPoints;
    const double wanted = exact(static_cast<double>(x));
    const double error = std::abs(fast(x) - wanted) / (std::abs(wanted) * 0x1p-24 + 1e-38);
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(VectorMath, ErrorsAreAFewUnitsInTheLastPlace) {
  const auto sigmoid64 = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  const auto softplus64 = [](double x) { return std::log1p(std::exp(x)); };
  EXPECT_LT(worst_error(
                -87, 88.7F, [](float x) { return exp(x); }, [](double x) { return std::exp(x); }),
            3);
  EXPECT_LT(
      worst_error(
          -30, 88.7F, [](float x) { return expm1(x); }, [](double x) { return std::expm1(x); }),
      4);
  EXPECT_LT(
      worst_error(
          -1e-3F, 1e-3F, [](float x) { return expm1(x); }, [](double x) { return std::expm1(x); }),
      3);
  EXPECT_LT(
      worst_error(
          0, 1, [](float x) { return log1p_unit(x); }, [](double x) { return std::log1p(x); }),
      4);
  EXPECT_LT(worst_error(
                1e-3F, 200, [](float x) { return log(x); }, [](double x) { return std::log(x); }),
            4);
  EXPECT_LT(worst_error(
                0.99F, 1.01F, [](float x) { return log(x); }, [](double x) { return std::log(x); }),
            4);
  EXPECT_LT(worst_error(
                -10, 10, [](float x) { return tanh(x); }, [](double x) { return std::tanh(x); }),
            5);
  EXPECT_LT(worst_error(
                -5, 5, [](float x) { return erf(x); }, [](double x) { return std::erf(x); }),
            7);  // 5 where multiplications and additions are fused
  EXPECT_LT(worst_error(
                -85, 30, [](float x) { return sigmoid(x); }, sigmoid64),
            4);
  EXPECT_LT(worst_error(
                -80, 80, [](float x) { return softplus(x); }, softplus64),
            6);
}

TEST(VectorMath, NanStaysNan) {
  EXPECT_TRUE(std::isnan(exp(kNan)));
  EXPECT_TRUE(std::isnan(expm1(kNan)));
  EXPECT_TRUE(std::isnan(log(kNan)));
  EXPECT_TRUE(std::isnan(tanh(kNan)));
  EXPECT_TRUE(std::isnan(erf(kNan)));
  EXPECT_TRUE(std::isnan(sigmoid(kNan)));
  EXPECT_TRUE(std::isnan(softplus(kNan)));
}

TEST(VectorMath, Limits) {
  EXPECT_EQ(exp(kInfinity), kInfinity);
  EXPECT_EQ(exp(89.0F), kInfinity);
  EXPECT_EQ(exp(-kInfinity), 0.0F);
  EXPECT_EQ(exp(0.0F), 1.0F);
  EXPECT_EQ(expm1(kInfinity), kInfinity);
  EXPECT_EQ(expm1(-kInfinity), -1.0F);
  EXPECT_EQ(expm1(0.0F), 0.0F);
  EXPECT_EQ(log(0.0F), -kInfinity);
  EXPECT_EQ(log(kInfinity), kInfinity);
  EXPECT_EQ(log(1.0F), 0.0F);
  EXPECT_TRUE(std::isnan(log(-1.0F)));
  EXPECT_EQ(tanh(kInfinity), 1.0F);
  EXPECT_EQ(tanh(-kInfinity), -1.0F);
  EXPECT_EQ(tanh(1e-20F), 1e-20F);
  EXPECT_EQ(erf(kInfinity), 1.0F);
  EXPECT_EQ(erf(-kInfinity), -1.0F);
  EXPECT_EQ(erf(3.9F), 1.0F);
  EXPECT_EQ(erf(1e30F), 1.0F);
  EXPECT_EQ(sigmoid(-kInfinity), 0.0F);
  EXPECT_EQ(sigmoid(kInfinity), 1.0F);
  EXPECT_EQ(softplus(kInfinity), kInfinity);
  EXPECT_EQ(softplus(-kInfinity), 0.0F);
}

}  // namespace
}  // namespace graft::vector_math
