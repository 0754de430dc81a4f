#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/node.h"

namespace graft {

/// Sizes of a Split node's outputs along a dim of `dim`; nullopt when they are an input that is not
/// known before the run. Throws Error{shape} if they do not add up, or if the dim cannot be split
/// evenly and num_outputs does not allow it to be uneven.
std::optional<std::vector<std::int64_t>> split_sizes(const Node& node, std::int64_t dim);

/// One piece of a whole tensor along an axis, and the copy that takes it there or from there; both
/// are seen as [outer, axis and inner]. Copy: StridedCopy, or that of a device.
template <class Copy>
struct AxisPiece {
  int index;            ///< among the node's inputs or outputs
  std::int64_t offset;  ///< in the whole
  Copy copy;
};

enum class PieceDirection { gather, scatter };

template <class Copy>
std::vector<AxisPiece<Copy>> axis_pieces(const Shape& whole, int axis,
                                         const std::vector<std::int64_t>& sizes,
                                         PieceDirection direction) {
  std::vector<AxisPiece<Copy>> pieces;
  const std::int64_t outer = whole.size(0, axis);
  const std::int64_t inner = whole.size(axis + 1, whole.rank());
  const std::vector<std::int64_t> in_whole{whole[axis] * inner, 1};
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    const std::int64_t columns = size * inner;
    const std::vector<std::int64_t> in_piece{columns, 1};
    const bool gathers = direction == PieceDirection::gather;
    pieces.push_back(
        {static_cast<int>(pieces.size()), offset,
         Copy({outer, columns}, gathers ? in_whole : in_piece, gathers ? in_piece : in_whole)});
    offset += columns;
  }
  return pieces;
}

}  // namespace graft
