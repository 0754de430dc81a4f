#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/ops/reduce/reduce.h"

namespace graft::reducing {

/// Columns that one task reduces at a time: partial results stay in the nearest cache.
inline constexpr std::int64_t kTile = 512;
/// Below this many columns several rows are reduced side by side, as one row of about this width.
inline constexpr std::int64_t kWide = 256;

/// How the work of one reduction is cut. A task is a tile of columns of one outer index; when there
/// are few tasks, each is split along the reduced length, and the parts are joined in order. All
/// of it depends on the shape alone, so the result does not depend on the number of threads.
struct Tasks {
  explicit Tasks(const ReduceLoop& loop) {
    if (loop.columns > 1) beside = std::clamp<std::int64_t>(kWide / loop.columns, 1, loop.rows);
    tiles = (loop.columns + kTile - 1) / kTile;
    count = loop.outer * tiles;
    constexpr std::int64_t kFewTasks = 16;
    constexpr std::int64_t kRowsWorthASplit = 128;  // one thread joins a row of totals a split
    const std::int64_t width = std::min(loop.columns, kTile);
    if (count < kFewTasks) {
      const std::int64_t least = std::max(kElementwiseGrain / width, kRowsWorthASplit);
      splits = std::clamp<std::int64_t>(loop.length() / least, 1, 64 / count);
    }
    slots = width;
    grain = kElementwiseGrain / std::max<std::int64_t>(1, loop.length() / splits * width) + 1;
  }

  std::int64_t beside = 1;
  std::int64_t tiles;
  std::int64_t count;
  std::int64_t splits = 1;
  std::int64_t slots;  ///< accumulators a task
  std::int64_t grain;
};

}  // namespace graft::reducing
