#pragma once

#include <cstdint>

#include "core/ops/kernel.h"

namespace graft {

/// What a layer or RMS normalization, or the gradient of one, normalizes: rows one by one.
struct NormRows {
  /// `input`: which one is x.
  NormRows(const KernelRequest& request, int input) {
    const Shape& x = request.shape(input);
    axis =
        normalize_axis(request.attributes().get_int("axis", -1), x.rank(), request.node().label());
    epsilon = static_cast<double>(request.attributes().get_float("epsilon", 1e-5F));
    length = x.size(axis, x.rank());
    // Rows of nothing are not walked, unless they have moments to write: x may name 10^15 of them.
    const bool has_moments = request.node().output_count() > 1 && input == 0;
    count = length == 0 && !has_moments ? 0 : x.size(0, axis);
  }

  int axis;
  std::int64_t count;
  std::int64_t length;
  double epsilon;
};

}  // namespace graft
