#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernel.h"

namespace graft {

/// A tensor seen as [outer, axis, inner], for ops that work along one axis. Work is cut into tiles
/// of at most kTile neighbouring inner positions, each the whole axis long; with inner 1 a tile is
/// one contiguous row.
struct AxisLoop {
  static constexpr std::int64_t kTile = 256;

  AxisLoop(const Shape& shape, int at) {
    if (shape.size() == 0) {  // nothing to walk; products of the other dims could overflow
      outer = 0;
      axis = shape[at];
      return;
    }
    outer = shape.size(0, at);
    axis = shape[at];
    inner = shape.size(at + 1, shape.rank());
    tiles = (inner + kTile - 1) / kTile;
  }
  /// Along the given axis (may be negative) of input 0.
  AxisLoop(const KernelRequest& request, std::int64_t at)
      : AxisLoop(request.shape(),
                 normalize_axis(at, request.shape().rank(), request.node().label())) {}

  /// Calls body(start, width): the tile's elements are start + i * inner + j for i < axis,
  /// j < width.
  template <class Body>
  void for_each_tile(Body&& body) const {
    const std::int64_t elements = std::max<std::int64_t>(1, axis * std::min(inner, kTile));
    parallel_for(outer * tiles, kRowwiseGrain / elements + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t tile = first; tile < last; ++tile) {
                     const std::int64_t j = tile % tiles * kTile;
                     body(tile / tiles * axis * inner + j, std::min(kTile, inner - j));
                   }
                 });
  }
  /// Where the results of the tile at `start` go in an [outer, inner] tensor.
  std::int64_t reduced_offset(std::int64_t start) const {
    return start / (axis * inner) * inner + start % inner;
  }

  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
  std::int64_t tiles = 1;
};

}  // namespace graft
