#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/ops/kernels/lanes.h"
#include "core/ops/kernels/vector_math.h"

namespace graft {

// Functions of numbers that are computed together.

inline Lanes16 all_lanes(float x) {
  return Lanes16{} + x;
}

template <class V>
V larger(const V& a, const V& b) {
  return by_registers([](const auto& x, const auto& y) { return x > y ? x : y; }, a, b);
}
inline double larger(double a, double b) {
  return a > b ? a : b;
}

namespace detail {

template <class V>
V exp2_of_register(const V& x) {
  using Bits [[gnu::vector_size(sizeof(V))]] = std::uint32_t;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer
  const V shifted = x + kRound;
  const V r = x - (shifted - kRound);
  V p = r * 0.000153458124F + 0.00133999309F;
  p = p * r + 0.00961848907F;
  p = p * r + 0.0555032864F;
  p = p * r + 0.240226462F;
  p = p * r + 0.693147182F;
  p = p * r + 1.0F;
  // The integer stands in the last bits of `shifted`; all others fall out.
  const auto power =
      std::bit_cast<V>(std::bit_cast<Bits>(p) + (std::bit_cast<Bits>(shifted) << 23));
  return x < -126.0F ? V{} : power;
}

}  // namespace detail

/// 2^x for x <= 127, within 1 unit in the last place; 0 where it would be denormal.
template <class V>
V exp2(const V& x) {
  return by_registers([](const auto& part) { return detail::exp2_of_register(part); }, x);
}

/// e^x for x <= 0.
inline Lanes16 exp_negative(const Lanes16& x) {
  constexpr float kLog2E = 1.44269504F;
  return exp2(x * kLog2E);
}
inline double exp_negative(double x) {
  return std::exp(x);
}

inline Lanes16 log_of(const Lanes16& x) {
  float numbers[16];
  store(numbers, x);
#pragma omp simd
  for (int lane = 0; lane < 16; ++lane) numbers[lane] = vector_math::log(numbers[lane]);
  return load<16>(numbers);
}
inline double log_of(double x) {
  return std::log(x);
}

}  // namespace graft
