#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

/// Elementary functions for kernels. Those of float have neither branches nor calls, so that a loop
/// over them compiles to vector instructions; their errors are a few units in the last place, and
/// NaN stays NaN. Those of double are the C library's. Polynomials are least-maximum fits.
namespace graft::vector_math {

template <class... Coefficients>
float polynomial(float x, float c0, Coefficients... higher) {
  if constexpr (sizeof...(higher) == 0) {
    return c0;
  } else {
    return c0 + x * polynomial(x, higher...);
  }
}

namespace detail {

inline constexpr float kLn2High = 0.693359375F;  // few bits: its product with an exponent is exact
inline constexpr float kLn2Low = -2.12194440e-4F;

/// x = exponent * ln 2 + r with |r| <= ln 2 / 2; expm1 = e^r - 1.
struct ReducedExp {
  std::int32_t exponent;
  float expm1;
};

inline ReducedExp reduce_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const float q =
      polynomial(r, 0.49999994F, 0.166665152F, 0.041668456F, 0.00836941879F, 0.00138131424F);
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound);
  return {static_cast<std::int32_t>(exponent), r + r * r * q};
}

/// 2^exponent for a normal result.
inline float power_of_2(std::int32_t exponent) {
  return std::bit_cast<float>((static_cast<std::uint32_t>(exponent) + 127U) << 23);
}

}  // namespace detail

inline float exp(float x) {
  x = x < -104.0F ? -104.0F : x;  // 0 from there on
  x = x > 89.0F ? 89.0F : x;      // infinity
  const auto [exponent, expm1] = detail::reduce_exp(x);
  // In two steps, for neither 2^128 nor 2^-150 is a normal float.
  const std::int32_t half = exponent >> 1;
  return (1.0F + expm1) * detail::power_of_2(half) * detail::power_of_2(exponent - half);
}
inline double exp(double x) {
  return std::exp(x);
}

/// e^x - 1
inline float expm1(float x) {
  constexpr std::int32_t kOneIsLost = 30;  // above this exponent, e^x - 1 rounds to e^x
  x = x < -20.0F ? -20.0F : x;             // -1 from there on
  x = x > 89.0F ? 89.0F : x;               // infinity
  const auto [exponent, expm1] = detail::reduce_exp(x);
  const std::int32_t half = exponent >> 1;
  const float low = detail::power_of_2(half);
  const float high = detail::power_of_2(exponent - half);
  const float scale = low * high;
  return exponent > kOneIsLost ? (1.0F + expm1) * low * high : scale * expm1 + (scale - 1.0F);
}
inline double expm1(double x) {
  return std::expm1(x);
}

/// log(1 + x) for x in [0, 1]: 2 atanh(x / (2 + x)).
inline float log1p_unit(float x) {
  const float s = x / (2.0F + x);
  return 2.0F * s *
         polynomial(s * s, 1.0F, 1.0F / 3, 1.0F / 5, 1.0F / 7, 1.0F / 9, 1.0F / 11, 1.0F / 13,
                    1.0F / 15);
}
inline double log1p_unit(double x) {
  return std::log1p(x);
}

inline float log(float x) {
  constexpr float kSmallestNormal = 0x1p-126F;
  const bool is_denormal = x < kSmallestNormal;
  const auto bits = std::bit_cast<std::uint32_t>(is_denormal ? x * 0x1p23F : x);
  // The mantissa m lies in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  const std::int32_t exponent = static_cast<std::int32_t>(bits - 0x3f3504f3U) >> 23;
  const float m = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23));
  const float e = static_cast<float>(exponent) - (is_denormal ? 23.0F : 0.0F);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  const float tail = 2.0F * s * z * polynomial(z, 1.0F / 3, 1.0F / 5, 1.0F / 7, 1.0F / 9);
  float result = e * detail::kLn2High + (2.0F * s + (tail + e * detail::kLn2Low));
  result = x > 3.4028235e38F ? x : result;
  result = x == 0.0F ? -HUGE_VALF : result;
  result = x < 0.0F ? std::bit_cast<float>(0x7fc00000U) : result;
  return x != x ? x : result;
}
inline double log(double x) {
  return std::log(x);
}

inline float tanh(float x) {
  const float e = expm1(-2.0F * std::abs(x));
  return std::copysign(e / (2.0F + e), x);
}
inline double tanh(double x) {
  return std::tanh(x);
}

/// x P(x^2) / Q(x^2): one formula over the range, within 2.8e-7 of the result.
inline float erf(float x) {
  constexpr float kEnd = 3.85F * 3.85F;  // the square from which on the result is 1
  const float z = std::min(kEnd, x * x);
  const float p = polynomial(z, 1.1283791F, 0.18788263F, 0.052477553F, 0.0036732475F, 0.0002856532F,
                             2.1083083e-06F);
  const float q =
      polynomial(z, 1.0F, 0.49983954F, 0.11312259F, 0.01478352F, 0.0011453243F, 3.8731097e-05F);
  return std::max(std::min(x * p / q, 1.0F), -1.0F);
}
inline double erf(double x) {
  return std::erf(x);
}

/// 1 / (1 + e^-x).
template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

/// log(1 + e^x), without overflow and without cancellation.
template <class T>
T softplus(T x) {
  return (x > T{0} ? x : T{0}) + log1p_unit(exp(-std::abs(x)));
}

}  // namespace graft::vector_math
