#pragma once

// Products of bf16 by tiles of 16 x 16 sums of f32: the processor's (amx_tiles.h), or of registers,
// where it adds the products of pairs as fast as single ones of f32 (AVX-512 BF16, adr/0088). Both
// read the same: 32 numbers of a row of a (left), pairs of two rows of b (right).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/float16.h"
#include "core/ops/kernels/amx_tiles.h"
#include "core/ops/kernels/register_tile.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// Rows of bf16 from the left of a product: 32 numbers of a row follow one another, the next 32 lie
/// `chunk_step` further.
struct Bf16Rows {
  const BFloat16* data;
  std::int64_t row_step;
  std::int64_t chunk_step = kBf16Inner;
};
/// Pairs of rows from the right, `row_step` pairs apart.
struct Bf16Pairs {
  const Bf16Pair* data;
  std::int64_t row_step;
};

/// What is summed: so many chunks of 32 numbers that follow one another; and that many times, each
/// so many numbers (a) and pairs (b) behind the one before.
struct Bf16Terms {
  std::int64_t chunks;
  std::int64_t times = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  /// Where each time begins in b, in place of steps.
  const std::int64_t* b_offsets = nullptr;
  /// So many numbers of the last chunk count; the others are 0 on one side. Even.
  std::int64_t last = kBf16Inner;

  std::int64_t b_offset(std::int64_t time) const {
    return b_offsets == nullptr ? time * b_step : b_offsets[time];
  }
};

namespace detail {

/// At most four tiles of sums, of one row or two; what is left of the eight holds operands.
template <bool adds, int rows, int columns>
void tiles_block(const Bf16Rows& a, const Bf16Pairs& b, const Bf16Terms& terms, float* c,
                 std::int64_t ldc) {
  static_assert(rows * columns <= 4);
  constexpr int kA = 4;
  constexpr int kB = kA + rows;
  const std::int64_t sum_bytes = ldc * std::int64_t{sizeof(float)};
  const auto sums = [&](int i) {
    return c + i / columns * kBf16Side * ldc + i % columns * kBf16Side;
  };
  unroll<rows * columns>([&]<int i>() {
    if constexpr (adds) {
      load_tile<i>(sums(i), sum_bytes);
    } else {
      clear_tile<i>();
    }
  });
  for (std::int64_t time = 0; time < terms.times; ++time) {
    const BFloat16* left = a.data + time * terms.a_step;
    const Bf16Pair* right = b.data + terms.b_offset(time);
    for (std::int64_t chunk = 0; chunk < terms.chunks; ++chunk) {
      unroll<rows>([&]<int r>() {
        load_tile<kA + r>(left + r * kBf16Side * a.row_step,
                          a.row_step * std::int64_t{sizeof(BFloat16)});
      });
      unroll<columns>([&]<int i>() {
        constexpr int kNext = kB + i % (8 - kB);
        load_tile<kNext>(right + i * kBf16Side, b.row_step * std::int64_t{sizeof(Bf16Pair)});
        unroll<rows>([&]<int r>() { multiply_tiles<r * columns + i, kA + r, kNext>(); });
      });
      left += a.chunk_step;
      right += kBf16Inner / 2 * b.row_step;
    }
  }
  unroll<rows * columns>([&]<int i>() { store_tile<i>(sums(i), sum_bytes); });
}

template <bool adds>
void multiply_by_tiles(const Bf16Rows& a, const Bf16Pairs& b, std::int64_t row_tiles,
                       std::int64_t column_tiles, const Bf16Terms& terms, float* c,
                       std::int64_t ldc) {
  for (std::int64_t row = 0; row < row_tiles; row += 2) {
    const Bf16Rows a_rows{a.data + row * kBf16Side * a.row_step, a.row_step, a.chunk_step};
    with_count<2>(std::min<std::int64_t>(2, row_tiles - row), [&]<int rows>() {
      constexpr std::int64_t kMost = 4 / rows;
      for (std::int64_t column = 0; column < column_tiles; column += kMost) {
        with_count<kMost>(std::min(kMost, column_tiles - column), [&]<int columns>() {
          tiles_block<adds, rows, columns>(a_rows, {b.data + column * kBf16Side, b.row_step}, terms,
                                           c + (row * ldc + column) * kBf16Side, ldc);
        });
      }
    });
  }
}

/// Sums, and the products of both pairs of each lane.
inline Lanes16 add_pairs(Lanes16 sums, Lanes16 a, Lanes16 b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
  return sums;
}

/// A pair in all lanes.
inline Lanes16 all_pairs(const BFloat16* pair) {
  Bf16Pair bits;
  std::memcpy(&bits, pair, sizeof(bits));
  const LaneBits<16>::Whole all = bits - LaneBits<16>::Whole{};
  Lanes16 v;
  std::memcpy(&v, &all, sizeof(v));
  return in_register(v);
}

/// So many rows of so many vectors of sums, in registers.
template <bool adds, int rows, int columns>
void registers_block(const Bf16Rows& a, const Bf16Pairs& b, const Bf16Terms& terms, float* c,
                     std::int64_t ldc) {
  Lanes16 sums[rows][columns];
  unroll<rows>([&]<int r>() {
    unroll<columns>(
        [&]<int i>() { sums[r][i] = adds ? load<16>(c + r * ldc + i * kBf16Side) : Lanes16{}; });
  });
  for (std::int64_t time = 0; time < terms.times; ++time) {
    const BFloat16* left = a.data + time * terms.a_step;
    const Bf16Pair* right = b.data + terms.b_offset(time);
    for (std::int64_t chunk = 0; chunk < terms.chunks; ++chunk, left += a.chunk_step) {
      const std::int64_t inner = chunk + 1 < terms.chunks ? kBf16Inner : terms.last;
      for (std::int64_t k = 0; k < inner; k += 2, right += b.row_step) {
        Lanes16 row[columns];
        unroll<columns>([&]<int i>() {
          std::memcpy(&row[i], right + i * kBf16Side, sizeof(row[i]));
          row[i] = in_register(row[i]);
        });
        unroll<rows>([&]<int r>() {
          const Lanes16 pair = all_pairs(left + r * a.row_step + k);
          unroll<columns>([&]<int i>() { sums[r][i] = add_pairs(sums[r][i], pair, row[i]); });
        });
      }
    }
  }
  unroll<rows>([&]<int r>() {
    unroll<columns>([&]<int i>() { store(c + r * ldc + i * kBf16Side, sums[r][i]); });
  });
}

/// So many rows that their sums leave registers for what is multiplied, and that an addition is
/// over before the next one to the same sum.
template <bool adds>
void multiply_by_registers(const Bf16Rows& a, const Bf16Pairs& b, std::int64_t row_tiles,
                           std::int64_t column_tiles, const Bf16Terms& terms, float* c,
                           std::int64_t ldc) {
  constexpr std::int64_t kMost = 3;
  const std::int64_t blocks = (column_tiles + kMost - 1) / kMost;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = column_tiles * block / blocks;
    const std::int64_t last = column_tiles * (block + 1) / blocks;
    with_count<kMost>(last - first, [&]<int columns>() {
      constexpr int kRows = columns == 1 ? kBf16Side : kBf16Side / 2;
      for (std::int64_t row = 0; row < row_tiles * kBf16Side; row += kRows) {
        registers_block<adds, kRows, columns>({a.data + row * a.row_step, a.row_step, a.chunk_step},
                                              {b.data + first * kBf16Side, b.row_step}, terms,
                                              c + row * ldc + first * kBf16Side, ldc);
      }
    });
  }
}

}  // namespace detail

/// c = a b, with `adds` c += a b, of so many tiles of rows and of columns. Needs AmxTiles.
template <bool adds>
void bf16_product(const Bf16Rows& a, const Bf16Pairs& b, std::int64_t row_tiles,
                  std::int64_t column_tiles, const Bf16Terms& terms, float* c, std::int64_t ldc) {
  if (may_use_amx()) {
    detail::multiply_by_tiles<adds>(a, b, row_tiles, column_tiles, terms, c, ldc);
  } else {
    detail::multiply_by_registers<adds>(a, b, row_tiles, column_tiles, terms, c, ldc);
  }
}

}  // namespace graft

#endif
