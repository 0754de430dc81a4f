#pragma once

#include <limits>

#include "core/graph/graph.h"

namespace graft {

/// What ConvClamp does to each result of its convolution. NaN stays NaN; where the bounds cross,
/// the upper one counts, as in Clip.
struct ConvClamp {
  explicit ConvClamp(const Attributes& attributes)
      : lower(attributes.get_float("lower", -kUnbounded)),
        upper(attributes.get_float("upper", kUnbounded)) {}

  template <class T>
  T operator()(T x) const {
    const T above = x < static_cast<T>(lower) ? static_cast<T>(lower) : x;
    return above > static_cast<T>(upper) ? static_cast<T>(upper) : above;
  }

  static constexpr float kUnbounded = std::numeric_limits<float>::infinity();
  float lower;
  float upper;
};

/// The same in each lane.
template <class V>
V clamped(const V& x, const ConvClamp& clamp) {
  const V lower = V{} + clamp.lower;
  const V upper = V{} + clamp.upper;
  const V above = x < lower ? lower : x;
  return above > upper ? upper : above;
}

}  // namespace graft
