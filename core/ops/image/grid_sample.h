#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/graph/node.h"

namespace graft {

/// How GridSample reads an image at a position
/// (https://onnx.ai/onnx/operators/onnx__GridSample.html; PyTorch's
/// aten/src/ATen/native/GridSampler.h decides where it is silent).
struct GridSampler {
  enum class Mode { nearest, linear, cubic };
  enum class Padding { zeros, border, reflection };

  /// Throws Error{model} for a mode or padding that does not exist.
  explicit GridSampler(const Node& node);

  Mode mode = Mode::linear;
  Padding padding = Padding::zeros;
  bool align_corners = false;
  /// The numbers are positions already: 0 is the centre of the first pixel.
  bool in_pixels = false;
};

/// The elements along one axis that a sample reads.
template <class T>
struct GridTaps {
  int count = 0;
  std::array<std::int64_t, 4> index;  ///< -1: padding, which is zero
  std::array<T, 4> weight;
  std::array<T, 4> slope;  ///< of the weight, by the grid's number
};

/// Reflects `x` at `low` and `high` until it lies between them; `direction` turns with it.
template <class T>
T reflect(T x, T low, T high, T& direction) {
  const T range = high - low;
  if (range <= 0) {
    direction = 0;
    return low;
  }
  const T distance = std::abs(x - low);
  const T turns = std::floor(distance / range);
  const T rest = distance - turns * range;
  const bool odd = std::fmod(turns, T{2}) != 0;
  direction = (x < low) != odd ? -direction : direction;
  return odd ? high - rest : low + rest;
}

/// Weights of the cubic convolution with a = -0.75, and their slopes, at distance `t` in [0, 1)
/// from the second of four neighbours.
template <class T>
void cubic_weights(T t, std::array<T, 4>& weight, std::array<T, 4>& slope) {
  constexpr T a = T(-0.75);
  const auto near = [&](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto near_slope = [&](T d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
  const auto far = [&](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto far_slope = [&](T d) { return (3 * a * d - 10 * a) * d + 8 * a; };
  weight = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  slope = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
}

namespace detail {

/// A whole position within the image, or -1 for zeros.
template <class T>
std::int64_t padded_index(const GridSampler& sampler, T at, std::int64_t size) {
  const T last = static_cast<T>(size - 1);
  // In T a large size may round up, so that `last` lies behind the last element.
  const auto within = [&](T place) { return std::min(static_cast<std::int64_t>(place), size - 1); };
  if (at >= 0 && at <= last) return within(at);
  if (sampler.padding == GridSampler::Padding::zeros) return -1;
  if (sampler.padding == GridSampler::Padding::reflection) {
    T direction = 1;
    const T half = sampler.align_corners ? T(0) : T(0.5);
    at = std::trunc(reflect(at, -half, last + half, direction));
  }
  return within(std::clamp(at, T(0), last));
}

}  // namespace detail

/// The taps for number `n` of the grid along an axis of `size` >= 1. A number that is not finite
/// counts as far outside.
template <class T>
GridTaps<T> grid_taps(const GridSampler& sampler, T n, std::int64_t size) {
  using Mode = GridSampler::Mode;
  using Padding = GridSampler::Padding;
  const T last = static_cast<T>(size - 1);
  const T half = sampler.align_corners ? T(0) : T(0.5);
  T slope = (sampler.align_corners ? last : static_cast<T>(size)) / 2;
  if (sampler.in_pixels) slope = 1;
  // Beyond 2^30 neighbouring numbers are no neighbouring elements any more.
  constexpr T kFar = T(std::int64_t{1} << 30);
  T x = sampler.in_pixels ? n : (n + 1) * slope - half;
  x = x > -kFar ? std::min(x, kFar) : -kFar;  // NaN too
  if (sampler.mode != Mode::cubic) {
    // Nearest rounds before it looks at the border, so that both agree on which element is meant.
    if (sampler.mode == Mode::nearest) x = std::nearbyint(x);
    if (sampler.padding == Padding::reflection && (x < -half || x > last + half)) {
      x = reflect(x, -half, last + half, slope);
    }
    if (sampler.padding != Padding::zeros && !(x > 0 && x < last)) {
      slope = 0;
      x = std::clamp(x, T(0), last);
    }
  }
  GridTaps<T> taps;
  const T floor = std::floor(x);
  switch (sampler.mode) {
    case Mode::nearest:
      taps.count = 1;
      taps.index[0] = detail::padded_index(sampler, std::nearbyint(x), size);
      taps.weight[0] = 1;
      taps.slope[0] = 0;
      return taps;
    case Mode::linear:
      taps.count = 2;
      taps.weight = {1 - (x - floor), x - floor};
      taps.slope = {-slope, slope};
      break;
    case Mode::cubic:
      taps.count = 4;
      cubic_weights(x - floor, taps.weight, taps.slope);
      for (T& one : taps.slope) one *= slope;
      break;
  }
  const T first = sampler.mode == Mode::cubic ? floor - 1 : floor;
  for (int k = 0; k < taps.count; ++k) {
    taps.index[static_cast<std::size_t>(k)] =
        detail::padded_index(sampler, first + static_cast<T>(k), size);
  }
  return taps;
}

}  // namespace graft
