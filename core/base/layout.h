#pragma once

#include <cstdint>
#include <vector>

#include "core/base/shape.h"

namespace graft {

/// In what order the elements of a value lie in a plan's memory. Shapes keep the standard's order
/// of axes, [N, C, spatial...], whatever the layout.
enum class Layout {
  row_major,
  channels_last,  ///< N, spatial..., C: the order in which convolutions are fastest
};

/// The axes of a value of that rank in channels-last order: {0, 2, 3, ..., 1}.
std::vector<std::int64_t> channels_last_order(int rank);

/// `shape` seen in channels-last order: [N, C, H, W] as [N, H, W, C].
Shape channels_last_shape(const Shape& shape);

/// `shape` with axes of 1 in front, up to `rank`: as it broadcasts.
Shape with_leading_ones(const Shape& shape, int rank);

/// Elements from one index to the next along each axis of `shape` in that layout.
std::vector<std::int64_t> layout_strides(const Shape& shape, Layout layout);

/// Whether both layouts are the same bytes: no channel axis, one channel, or one position.
bool is_layout_neutral(const Shape& shape);

}  // namespace graft
