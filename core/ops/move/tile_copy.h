#pragma once

#include <cstdint>
#include <vector>

#include "core/base/shape.h"

namespace graft {

/// Tile as a copy: each axis is two, the repeats, along which the source stands still, and the axis
/// itself. Of a result with elements.
struct TileCopy {
  TileCopy(const Shape& x, const Shape& y) {
    const std::vector<std::int64_t> x_strides = x.strides();
    const std::vector<std::int64_t> y_strides = y.strides();
    for (int axis = 0; axis < x.rank(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      dims.insert(dims.end(), {y[axis] / x[axis], x[axis]});
      target.insert(target.end(), {y_strides[at] * x[axis], y_strides[at]});
      source.insert(source.end(), {0, x_strides[at]});
    }
  }

  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> target;  ///< steps
  std::vector<std::int64_t> source;
};

}  // namespace graft
