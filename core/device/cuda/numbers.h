#pragma once

#include <simt.h>

#include <bit>
#include <cstdint>

#include "core/base/float16.h"

namespace graft {

// Between element types in memory and the f32 in which kernels compute; bf16 rounds to nearest even
// and keeps NaN, a bool is 0 or 1, as on the CPU.
__device__ inline float as_float(float x) {
  return x;
}
__device__ inline float as_float(bool x) {
  return x ? 1.0F : 0.0F;
}
__device__ inline float as_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

__device__ inline void set_float(float& y, float x) {
  y = x;
}
__device__ inline void set_float(bool& y, float x) {
  y = x != 0.0F;
}
__device__ inline void set_float(BFloat16& y, float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const bool nan = (u & 0x7fffffffU) > 0x7f800000U;
  y.bits =
      static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40U : (u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
}

/// In what numbers of a type are summed: themselves, but bf16 in f32.
template <class T>
struct Summed {
  using type = T;
};
template <>
struct Summed<BFloat16> {
  using type = float;
};

__device__ inline float summand(float x) {
  return x;
}
__device__ inline double summand(double x) {
  return x;
}
__device__ inline float summand(BFloat16 x) {
  return as_float(x);
}

__device__ inline void set_sum(float& y, float x) {
  y = x;
}
__device__ inline void set_sum(double& y, double x) {
  y = x;
}
__device__ inline void set_sum(BFloat16& y, float x) {
  set_float(y, x);
}

}  // namespace graft
