#pragma once

#include <algorithm>
#include <type_traits>

#include "core/ops/attention/feed_forward.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/tile_product.h"

namespace graft::feed_forward {

// Blocks, ranges and products of the kernels of FeedForward and FeedForwardGrad.

/// Rows whose hidden values stay in a first-level cache beside the weights of a range.
inline constexpr std::int64_t kStripRows = 48;
/// Rows of the block whose hidden values a product with a^T or x^T sums at once.
inline constexpr std::int64_t kBlockRows = 96;
/// Hidden columns of a range.
inline constexpr std::int64_t kRangeColumns = 64;

struct Extent {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

/// c = a b, or c += a b with `adds`, for row-major matrices of T with rows `ld` apart; any sizes.
template <class T>
struct PlainProducts {
  using Number = T;
  static bool suits(const Sizes&) { return true; }

  template <bool adds>
  static void product(const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Extent size, T* c,
                      std::int64_t ldc) {
    run<adds>(a, lda, 1, b, ldb, size, c, ldc);
  }
  /// c += a^T b
  static void add_transposed(const T* a, std::int64_t lda, const T* b, std::int64_t ldb,
                             Extent size, T* c, std::int64_t ldc) {
    run<true>(a, 1, lda, b, ldb, size, c, ldc);
  }

 private:
  template <bool adds>
  static void run(const T* a, std::int64_t row_step, std::int64_t column_step, const T* b,
                  std::int64_t ldb, Extent size, T* c, std::int64_t ldc) {
    for (std::int64_t i = 0; i < size.rows; ++i, a += row_step, c += ldc) {
      if (!adds) std::fill_n(c, size.columns, T{0});
      for (std::int64_t k = 0; k < size.inner; ++k) {
        const T factor = a[k * column_step];
        const T* const row = b + k * ldb;
#pragma omp simd
        for (std::int64_t j = 0; j < size.columns; ++j) c[j] += factor * row[j];
      }
    }
  }
};

/// The same in registers, for f32 and sizes of whole vectors.
struct TileProducts {
  using Number = float;
  static bool suits(const Sizes& n) {
    constexpr std::int64_t kLanes = kTileLanes;
    return n.width % kLanes == 0 && n.hidden % kLanes == 0 && n.columns % kLanes == 0;
  }

  template <bool adds>
  static void product(const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                      Extent size, float* c, std::int64_t ldc) {
    tile_product<adds>(TileOperand<std::int64_t>{a, lda, 1}, b, ldb, size.rows, size.inner,
                       size.columns, c, ldc);
  }
  static void add_transposed(const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                             Extent size, float* c, std::int64_t ldc) {
    tile_product<true>(TileOperand<std::integral_constant<std::int64_t, 1>>{a, {}, lda}, b, ldb,
                       size.rows, size.inner, size.columns, c, ldc);
  }
};

/// Some of the hidden columns.
struct Range {
  std::int64_t first;
  std::int64_t count;
};

template <class Body>
void for_each_range(std::int64_t hidden, Body&& body) {
  for (std::int64_t first = 0; first < hidden; first += kRangeColumns) {
    body(Range{first, std::min(kRangeColumns, hidden - first)});
  }
}

/// Copies a matrix [rows, hidden] so that the columns of each range lie together: those of a range
/// start at rows * range.first and are range.count apart. `row_step`, `column_step`: of `from`.
template <class T>
void pack_ranges(const T* from, std::int64_t row_step, std::int64_t column_step, std::int64_t rows,
                 std::int64_t hidden, T* to) {
  const std::int64_t ranges = (hidden + kRangeColumns - 1) / kRangeColumns;
  parallel_for(ranges, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t range = begin; range < end; ++range) {
      const std::int64_t first = range * kRangeColumns;
      const std::int64_t count = std::min(kRangeColumns, hidden - first);
      T* at = to + rows * first;
      for (std::int64_t i = 0; i < rows; ++i, at += count) {
        const T* const row = from + i * row_step + first * column_step;
        for (std::int64_t j = 0; j < count; ++j) at[j] = row[j * column_step];
      }
    }
  });
}

/// to[column][row] = from[row][column]
template <class T>
void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  parallel_for(columns, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t j = first; j < last; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) to[j * rows + i] = from[i * columns + j];
    }
  });
}

template <class T>
void fill_rows(const T* row, std::int64_t rows, std::int64_t columns, T* to) {
  for (std::int64_t i = 0; i < rows; ++i, to += columns) {
    if (row == nullptr) {
      std::fill_n(to, columns, T{0});
    } else {
      std::copy_n(row, columns, to);
    }
  }
}

/// Tasks of kStripRows rows each.
inline Pieces pieces_of(const Sizes& n) {
  const double size = static_cast<double>(n.hidden) * static_cast<double>(n.width + n.columns);
  Pieces pieces((n.rows + kStripRows - 1) / kStripRows, static_cast<double>(n.rows) * size);
  pieces.count = std::min(pieces.count, (n.rows + kBlockRows - 1) / kBlockRows);
  return pieces;
}

/// Calls body(row, count) for the blocks of rows of these tasks.
template <class Body>
void for_each_block(const Sizes& n, std::int64_t first, std::int64_t last, Body&& body) {
  const std::int64_t end = std::min(last * kStripRows, n.rows);
  for (std::int64_t row = first * kStripRows; row < end; row += kBlockRows) {
    body(row, std::min(kBlockRows, end - row));
  }
}

/// The same for the strips of a block, from its start on.
template <class Body>
void for_each_strip(std::int64_t rows, Body&& body) {
  for (std::int64_t row = 0; row < rows; row += kStripRows) {
    body(row, std::min(kStripRows, rows - row));
  }
}

}  // namespace graft::feed_forward
