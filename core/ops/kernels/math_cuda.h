#pragma once

#include <simt.h>

#include <algorithm>
#include <cstdint>

// Functions of f32 and f64 by one name, for kernels that are templates.
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

}  // namespace graft::device_math
