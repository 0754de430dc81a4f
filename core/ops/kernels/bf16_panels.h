#pragma once

// Rows of bf16 in the orders that their products read (bf16_product.h).
#include <algorithm>
#include <cstring>

#include "core/ops/kernels/bf16_product.h"
#include "core/ops/kernels/transpose.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// What whole chunks of 32 make of a length.
inline std::int64_t bf16_padded(std::int64_t length) {
  return (length + kBf16Inner - 1) / kBf16Inner * kBf16Inner;
}

/// The sums over so many numbers, the last chunk of them filled up with zeros.
inline Bf16Terms terms_of(std::int64_t length) {
  const std::int64_t chunks = bf16_padded(length) / kBf16Inner;
  const std::int64_t last = length - (chunks - 1) * kBf16Inner;
  return {.chunks = chunks, .last = last + last % 2};
}

/// Rows of bf16 that follow one another: whole chunks of them and of columns, 0 where there is
/// nothing. What other orders are made of, and as it is the left side of a product.
struct Bf16Panel {
  BFloat16* data;
  std::int64_t rows;
  std::int64_t width;

  Bf16Rows from_row(std::int64_t row) const { return {data + row * width, width}; }
};

/// Fills the panel with `rows` rows x of so many columns, `step` apart.
inline void fill_panel(const BFloat16* x, std::int64_t step, std::int64_t rows,
                       std::int64_t columns, const Bf16Panel& panel) {
  for (std::int64_t r = 0; r < rows; ++r) {
    BFloat16* const to = panel.data + r * panel.width;
    std::copy_n(x + r * step, columns, to);
    std::fill_n(to + columns, panel.width - columns, BFloat16());
  }
  std::fill_n(panel.data + rows * panel.width, (panel.rows - rows) * panel.width, BFloat16());
}

namespace detail {

/// The pairs of 16 columns of two rows, their bits in lanes.
inline Lanes16 pairs_of(const BFloat16* first, const BFloat16* second) {
  using Short = LaneBits<16>::Short;
  Short a;
  Short b;
  std::memcpy(&a, first, sizeof(a));
  std::memcpy(&b, second, sizeof(b));
  const auto both = [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, ((i & 1) * 16 + i / 2)...);
  }
  (std::make_integer_sequence<int, 32>());
  Lanes16 pairs;
  std::memcpy(&pairs, &both, sizeof(pairs));
  return pairs;
}

}  // namespace detail

/// Sums over rows, from the right: [rows / 2][width] pairs.
inline void pack_row_pairs(const Bf16Panel& panel, Bf16Pair* pairs) {
  for (std::int64_t r = 0; r < panel.rows; r += 2) {
    const BFloat16* const row = panel.data + r * panel.width;
    for (std::int64_t c = 0; c < panel.width; c += 16) {
      const Lanes16 v = detail::pairs_of(row + c, row + panel.width + c);
      std::memcpy(pairs + r / 2 * panel.width + c, &v, sizeof(v));
    }
  }
}

/// Sums over columns, from the right: [width / 2][rows] pairs.
inline void pack_column_pairs(const Bf16Panel& panel, Bf16Pair* pairs) {
  for (std::int64_t r = 0; r < panel.rows; r += 16) {
    for (std::int64_t c = 0; c < panel.width; c += 32) {
      Lanes16 block[16];
      unroll<16>([&]<int i>() {
        std::memcpy(&block[i], panel.data + (r + i) * panel.width + c, sizeof(block[i]));
      });
      transpose(block);
      unroll<16>([&]<int i>() {
        std::memcpy(pairs + (c / 2 + i) * panel.rows + r, &block[i], sizeof(block[i]));
      });
    }
  }
}

/// Sums over rows, from the left: columns become rows, of 32 numbers at a time:
/// [rows / 32][width][32].
inline void pack_columns(const Bf16Panel& panel, BFloat16* columns) {
  for (std::int64_t r = 0; r < panel.rows; r += kBf16Inner) {
    for (std::int64_t c = 0; c < panel.width; c += 16) {
      Lanes16 block[16];
      unroll<16>([&]<int i>() {
        const BFloat16* const row = panel.data + (r + 2 * i) * panel.width + c;
        block[i] = detail::pairs_of(row, row + panel.width);
      });
      transpose(block);
      unroll<16>([&]<int i>() {
        std::memcpy(static_cast<void*>(columns + r * panel.width + (c + i) * kBf16Inner), &block[i],
                    sizeof(block[i]));
      });
    }
  }
}

/// The same of some columns of 32 rows that lie anywhere, or are null for zeros, and have at least
/// 16 columns, the last of which is `last` - 1; in whole vectors: [columns][32].
inline void pack_columns(const BFloat16* const (&rows)[kBf16Inner], std::int64_t first,
                         std::int64_t last, BFloat16* to) {
  static constexpr BFloat16 kNothing[kBf16Side] = {};
  for (std::int64_t c = first; c < last; c += kBf16Side, to += kBf16Side * kBf16Inner) {
    // The last vector has columns of the one before, too.
    const std::int64_t from = std::min(c, last - kBf16Side);
    const auto part = [&](int i) { return rows[i] == nullptr ? kNothing : rows[i] + from; };
    Lanes16 block[16];
    unroll<16>([&]<int i>() { block[i] = detail::pairs_of(part(2 * i), part(2 * i + 1)); });
    transpose(block);
    const std::int64_t twice = c - from;
    unroll<16>([&]<int i>() {
      void* const column = to + (i - twice) * kBf16Inner;
      if (i >= twice) std::memcpy(column, &block[i], sizeof(block[i]));
    });
    std::fill_n(to + (kBf16Side - twice) * kBf16Inner, twice * kBf16Inner, BFloat16());
  }
}

/// The rows of `pack_columns` from chunk `row` / 32 on.
inline Bf16Rows columns_from_row(const BFloat16* columns, const Bf16Panel& panel,
                                 std::int64_t row) {
  return {columns + row * panel.width, kBf16Inner, panel.width * kBf16Inner};
}

}  // namespace graft

#endif
