#pragma once

#include <simt.h>

#include "core/device/cuda/trigonometry.h"
#include "core/ops/math/elementwise_chain_cuda.h"

namespace graft {

struct alignas(16) Four {
  float v[4];
};

namespace link {

__device__ inline float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}
__device__ inline float normal_cdf(float x) {
  return 0.5F + 0.5F * erff(x * 0.70710678118654752F);
}
/// The argument of the tanh in Gelu's approximation, and its slope.
__device__ inline float gelu_argument(float x) {
  return 0.79788456080286536F * x * (1.0F + 0.044715F * x * x);
}
__device__ inline float gelu_argument_slope(float x) {
  return 0.79788456080286536F * (1.0F + 0.134145F * x * x);
}
__device__ inline float gelu_tanh_gradient(float x, float dy) {
  const float t = tanhf(gelu_argument(x));
  return dy * 0.5F * (1.0F + t + x * (1.0F - t * t) * gelu_argument_slope(x));
}
__device__ inline float gelu_gradient(float x, float dy) {
  return dy * (normal_cdf(x) + x * 0.39894228040143268F * expf(-0.5F * x * x));
}
__device__ inline float swish_gradient(float x, float dy, float alpha) {
  const float s = sigmoid(alpha * x);
  return dy * s * (1.0F + alpha * x * (1.0F - s));
}
/// tanh(softplus(x)) = n / (n + 2) with w = e^x, n = w^2 + 2w; 1 for x > 20.
__device__ inline float mish(float x) {
  const float w = expf(x > 20.0F ? 20.0F : x);
  const float n = w * (w + 2.0F);
  return x * (n / (n + 2.0F));
}
__device__ inline float mish_gradient(float x, float dy) {
  const float w = expf(x > 20.0F ? 20.0F : x);
  const float n = w * (w + 2.0F);
  const float slope = 4.0F * w * (1.0F + w) / ((n + 2.0F) * (n + 2.0F));
  return dy * (n / (n + 2.0F) + x * slope);
}
__device__ inline float unit_clamp(float x) {
  const float above = x < 0.0F ? 0.0F : x;
  return above > 1.0F ? 1.0F : above;
}
__device__ inline float hard_swish_gradient(float x, float dy) {
  return x <= -3.0F ? 0.0F : x >= 3.0F ? dy : dy * (x * (1.0F / 3.0F) + 0.5F);
}
__device__ inline float sign(float x) {
  return x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : x;
}
/// Max(x, 0) + log(1 + e^-|x|).
__device__ inline float softplus(float x) {
  return (x < 0.0F ? 0.0F : x) + log1pf(expf(-fabsf(x)));
}
__device__ inline float clip(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}
__device__ inline float tangent(float x) {
  const SineCosine<float> at = sine_cosine(x);
  return at.sine / at.cosine;
}
__device__ inline float truth(bool x) {
  return x ? 1.0F : 0.0F;
}

template <class Function>
__device__ inline Four each(const Four& x, const Four& y, const Four& z, Function function) {
  return {{function(x.v[0], y.v[0], z.v[0]), function(x.v[1], y.v[1], z.v[1]),
           function(x.v[2], y.v[2], z.v[2]), function(x.v[3], y.v[3], z.v[3])}};
}

}  // namespace link
}  // namespace graft
