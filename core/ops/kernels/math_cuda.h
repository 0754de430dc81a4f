#pragma once

#include <simt.h>

#include <algorithm>
#include <cstdint>

// Functions of f32 and f64 by one name, for kernels that are templates, and positions by index.
namespace graft::device_math {

__device__ inline float exp(float x) {
  return ::expf(x);
}
__device__ inline double exp(double x) {
  return ::exp(x);
}
__device__ inline float log(float x) {
  return ::logf(x);
}
__device__ inline double log(double x) {
  return ::log(x);
}
__device__ inline float sqrt(float x) {
  return ::sqrtf(x);
}
__device__ inline double sqrt(double x) {
  return ::sqrt(x);
}
__device__ inline float tanh(float x) {
  return ::tanhf(x);
}
__device__ inline double tanh(double x) {
  return ::tanh(x);
}
template <class T>
__device__ T sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

/// Minus infinity.
template <class T>
__device__ T lowest() {
  return static_cast<T>(-HUGE_VAL);
}
template <class T>
__device__ T not_a_number() {
  return static_cast<T>(HUGE_VAL - HUGE_VAL);
}

/// As clamp_index of core/ops/kernels/index.h.
__device__ inline std::int64_t clamped_index(std::int64_t index, std::int64_t dim) {
  const std::int64_t from_start = index < 0 ? index + dim : index;
  return from_start < 0 ? 0 : from_start < dim ? from_start : dim - 1;
}

}  // namespace graft::device_math
