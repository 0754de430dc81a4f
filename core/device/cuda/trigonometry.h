// Sine and cosine without local memory, which those of nvcc take to reduce large numbers.
#pragma once

#include <simt.h>

#include <bit>
#include <cstdint>

namespace graft {

template <class T>
struct SineCosine {
  T sine;
  T cosine;
};

/// Of r in [-pi/4, pi/4], by the first terms of Taylor's series: five make the error of f32 less
/// than its rounding, eight that of f64.
template <int kTerms, class T>
__device__ SineCosine<T> sine_cosine_near_0(T r) {
  const T square = r * r;
  T sine = 1;
  T cosine = 1;
  for (int k = 2 * kTerms; k > 0; k -= 2) {
    sine = 1 - square * (T{1} / static_cast<T>(k * (k + 1))) * sine;
    cosine = 1 - square * (T{1} / static_cast<T>((k - 1) * k)) * cosine;
  }
  return {r * sine, cosine};
}

/// Those of an angle that is larger by n quarters of the circle.
template <class T>
__device__ SineCosine<T> turned(const SineCosine<T>& by, std::uint64_t n) {
  const T sine = n % 2 == 0 ? by.sine : by.cosine;
  const T cosine = n % 2 == 0 ? by.cosine : -by.sine;
  return n % 4 < 2 ? SineCosine<T>{sine, cosine} : SineCosine<T>{-sine, -cosine};
}

/// The binary digits of 2 / pi, 32 a word; those of word 0 stand before the point.
__device__ inline std::uint64_t two_over_pi(int word) {
  switch (word) {
    case 0:
      return 0;
    case 1:
      return 0xa2f9836e;
    case 2:
      return 0x4e441529;
    case 3:
      return 0xfc2757d1;
    case 4:
      return 0xf534ddc0;
    case 5:
      return 0xdb629599;
    case 6:
      return 0x3c439041;
    default:
      return 0xfe5163ab;
  }
}

/// 32 digits of 2 / pi from `digit` on, counted from the first of word 0.
__device__ inline std::uint64_t digits_of_two_over_pi(int digit) {
  const std::uint64_t both = two_over_pi(digit / 32) << 32 | two_over_pi(digit / 32 + 1);
  return both << digit % 32 >> 32;
}

/// Of any x; NaN of infinities and NaN. |x| = m 2^e with whole m: of the product of m with 2 / pi,
/// only the digits that are no multiple of 4 say where x is on the circle (Payne and Hanek,
/// "Radian Reduction for Trigonometric Functions", SIGNUM 1983).
__device__ inline SineCosine<float> sine_cosine(float x) {
  constexpr float kEighthTurn = 0.785398163F;
  constexpr int kTerms = 5;
  if (fabsf(x) <= kEighthTurn) return sine_cosine_near_0<kTerms>(x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const int exponent = static_cast<int>(bits >> 23 & 0xff);
  if (exponent == 0xff) return {x - x, x - x};
  const std::uint64_t m = (bits & 0x7fffff) | 0x800000;
  const int first = exponent - 120;  // the digit that m moves to the place of 2
  const std::uint64_t leading =
      digits_of_two_over_pi(first) << 32 | digits_of_two_over_pi(first + 32);
  // In quarters of the circle, times 2^62, without multiples of 4.
  const std::uint64_t product = m * leading + (m * digits_of_two_over_pi(first + 64) >> 32);
  const std::uint64_t quarters = (product + (std::uint64_t{1} << 61)) >> 62;
  const auto rest = static_cast<std::int64_t>(product - (quarters << 62));
  constexpr float kQuarterTurn = 1.57079633F * 0x1p-62F;
  SineCosine<float> found =
      turned(sine_cosine_near_0<kTerms>(static_cast<float>(rest) * kQuarterTurn), quarters);
  if (x < 0.0F) found.sine = -found.sine;
  return found;
}

}  // namespace graft
