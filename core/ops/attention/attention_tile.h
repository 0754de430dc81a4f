#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/machine.h"
#include "core/ops/attention/attention_geometry.h"
#include "core/ops/kernels/lanes_math.h"
#include "core/ops/kernels/tile_product.h"
#include "core/ops/kernels/transpose.h"

namespace graft {

// A tile holds scores [key][query]: 64 queries stand side by side in lanes, so that maxima and sums
// over keys need no shuffling. Scores are in powers of 2: they carry a factor log2(e).

inline constexpr std::int64_t kTileQueries = 64;
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

/// Depths of rows that are read as vectors are rounded up to whole ones.
inline std::int64_t padded_depth(std::int64_t depth) {
  return (depth + 15) / 16 * 16;
}

/// The queries of one tile.
struct TileRows {
  TileRows(std::int64_t block, std::int64_t queries)
      : first(block * kTileQueries), count(std::min(kTileQueries, queries - first)) {}

  /// Whole vectors of them.
  std::int64_t vectors() const { return (count + 15) / 16; }
  std::int64_t lanes() const { return vectors() * 16; }

  std::int64_t first;
  std::int64_t count;
};

/// Calls body.operator()<registers>(first) for groups of at most four registers of `lanes` queries:
/// GCC 12 computes on vectors that are wider than a register by way of memory.
template <class Body>
void for_each_register_group(std::int64_t lanes, Body&& body) {
  constexpr int kMost = 4;
  for (std::int64_t first = 0; first < lanes; first += kMost * kRegisterLanes) {
    const std::int64_t count = std::min<std::int64_t>(kMost, (lanes - first) / kRegisterLanes);
    with_count<kMost>(count, [&]<int registers>() { body.template operator()<registers>(first); });
  }
}

/// Asks for rows that are soon read: the order in which tiles take them is not one that hardware
/// foresees. Addresses past the end of an operand do no harm.
inline void prefetch_rows(const float* x, std::int64_t step, std::int64_t rows,
                          std::int64_t columns) {
  constexpr std::int64_t kLineFloats = kCacheLineBytes / std::int64_t{sizeof(float)};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; c += kLineFloats) __builtin_prefetch(x + r * step + c);
  }
}

/// Rows of keys or values that many tiles read.
struct KeyRows {
  const float* data;
  std::int64_t step;
  const float* operator[](std::int64_t row) const { return data + row * step; }
};

/// Rows x as they lie if they follow one another, else a copy of them: a power of 2 between rows
/// would leave them a few lines of the caches.
inline KeyRows close_rows(const float* x, const SequenceRows& rows, std::int64_t count,
                          float* copy) {
  constexpr std::int64_t kAhead = 16;
  if (rows.row_step == rows.depth) return {x, rows.depth};
  for (std::int64_t r = 0; r < count; ++r) {
    const float* const from = x + r * rows.row_step;
    prefetch_rows(from + kAhead * rows.row_step, rows.row_step, 1, rows.depth);
    std::copy_n(from, rows.depth, copy + r * rows.depth);
  }
  return {copy, rows.depth};
}

/// Floats that `close_rows` may need for its copy.
inline std::int64_t copied_floats(const SequenceRows& rows, std::int64_t count) {
  return rows.row_step == rows.depth ? 0 : checked_multiply(count, rows.depth);
}

/// 16 rows, `step` apart, from row `first` on; null from row `rows` on.
template <class T>
struct RowPointers {
  RowPointers(T* x, std::int64_t step, std::int64_t first, std::int64_t rows) {
    for (std::int64_t i = 0; i < 16; ++i) {
      at[i] = first + i < rows ? x + (first + i) * step : nullptr;
    }
  }
  T* at[16];
};

/// Rows x: [rows, columns], `step` apart, as out: [columns][kTileQueries], times `factor`; 0 in the
/// lanes that are left.
inline void transpose_in(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                         float factor, float* out) {
  for (std::int64_t first = 0; first < rows; first += 16) {
    const RowPointers<const float> from(x, step, first, rows);
    for_each_column(from.at, columns, [&](std::int64_t c, const Lanes16& v) {
      store(out + c * kTileQueries + first, v * factor);
    });
  }
}

/// The reverse.
template <class T>
void transpose_out(const float* x, std::int64_t rows, std::int64_t columns, float factor, T* out,
                   std::int64_t step) {
  for (std::int64_t first = 0; first < rows; first += 16) {
    const auto column = [&](std::int64_t c) {
      return load<16>(x + c * kTileQueries + first) * factor;
    };
    store_columns(columns, column, RowPointers<T>(out, step, first, rows).at);
  }
}

/// scores += bias, which starts at the tile's first query and key.
inline void add_bias(const AttentionBias& bias, const float* from, const TileRows& rows,
                     std::int64_t keys, float* scores) {
  if (bias.query_step == 0) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const Lanes16 shift = all_lanes(from[j * bias.key_step] * kLog2E);
      for (std::int64_t i = 0; i < rows.lanes(); i += 16) {
        float* const at = scores + j * kTileQueries + i;
        store(at, load<16>(at) + shift);
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < rows.lanes(); i += 16) {
    const auto add = [&](std::int64_t j, const Lanes16& shift) {
      float* const at = scores + j * kTileQueries + i;
      store(at, load<16>(at) + shift * kLog2E);
    };
    const RowPointers<const float> query(from, bias.query_step, i, rows.count);
    if (bias.key_step == 1) {
      for_each_column(query.at, keys, add);
    } else {  // one number a query
      for_each_column(query.at, 1, [&](std::int64_t, const Lanes16& shift) {
        for (std::int64_t j = 0; j < keys; ++j) add(j, shift);
      });
    }
  }
}

}  // namespace graft
