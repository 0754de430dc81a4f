#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/node.h"

namespace graft {

/// What a Slice takes of one axis of known size: `count` elements from `start` on, `step` apart.
struct AxisRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

/// The part of an axis of `dim` elements that [start, end) with `step` selects, by NumPy's rules:
/// negative positions count from the end, positions outside are clamped. `step` is not 0.
AxisRange slice_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t dim);

/// One range an axis of `shape`, for a Slice node; nullopt when starts, ends, axes or steps are not
/// known before the run. Throws Error{shape} where they make no sense.
std::optional<std::vector<AxisRange>> slice_ranges(const Node& node, const Shape& shape);

/// One range an axis of the input gradient, for a SliceGrad node.
std::vector<AxisRange> slice_grad_ranges(const Node& node, const Shape& dy);

/// The part of a whole tensor that ranges select, as a strided view.
struct SliceView {
  SliceView(const Shape& whole, const std::vector<AxisRange>& ranges);

  std::int64_t offset = 0;
  std::vector<std::int64_t> steps;
};

}  // namespace graft
