#pragma once

// Products of bf16 by the processor's tiles: registers of 16 rows of 64 bytes. One instruction adds
// 16 rows of 32 numbers (a) times 32 rows of 16 numbers (b) to 16 x 16 sums of f32 (c). It reads
// two rows of b as one: a pair is what two rows hold in a column, side by side. Builds for certain
// models, which are to be small, do without: kIsForCertainModels, where the preprocessor asks.
#if defined(__x86_64__) && defined(__AVX512F__) && !defined(GRAFT_KERNEL_DTYPES)
#define GRAFT_HAS_AMX_TILES

#include <algorithm>
#include <cstdint>

#include "core/base/float16.h"
#include "core/ops/kernels/register_tile.h"

namespace graft {

inline constexpr std::int64_t kAmxSide = 16;   ///< rows, and columns of sums
inline constexpr std::int64_t kAmxInner = 32;  ///< numbers of a row of a
using Bf16Pair = std::uint32_t;

/// Sets up all tiles of this thread in full size, and gives them back: a thread that holds tiles is
/// slower to switch, and oneDNN sets up its own.
class AmxTiles {
 public:
  AmxTiles() {
    struct alignas(64) {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const config;
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~AmxTiles() { asm volatile("tilerelease" : :); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

namespace detail {

// Not the compiler's own functions: those need a target that all of a file would be compiled for,
// and GCC 12 does not know that theirs read memory.

template <int tile>
void load_tile(const void* from, std::int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(tile) : "memory");
}
template <int tile>
void store_tile(void* to, std::int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(tile) : "memory");
}
template <int tile>
void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <int c, int a, int b>
void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
}

}  // namespace detail

/// Rows of bf16 from the left of a product: 32 numbers of a row follow one another, the next 32 lie
/// `chunk_step` further.
struct AmxRows {
  const BFloat16* data;
  std::int64_t row_step;
  std::int64_t chunk_step = kAmxInner;
};
/// Pairs of rows from the right, `row_step` pairs apart.
struct AmxPairs {
  const Bf16Pair* data;
  std::int64_t row_step;
};

/// What is summed: so many chunks of 32 numbers that follow one another; and that many times, each
/// so many numbers (a) and pairs (b) behind the one before.
struct AmxTerms {
  std::int64_t chunks;
  std::int64_t times = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  /// Where each time begins in b, in place of steps.
  const std::int64_t* b_offsets = nullptr;

  std::int64_t b_offset(std::int64_t time) const {
    return b_offsets == nullptr ? time * b_step : b_offsets[time];
  }
};

namespace detail {

/// At most four tiles of sums, of one row or two; what is left of the eight holds operands.
template <bool adds, int rows, int columns>
void amx_block(const AmxRows& a, const AmxPairs& b, const AmxTerms& terms, float* c,
               std::int64_t ldc) {
  static_assert(rows * columns <= 4);
  constexpr int kA = 4;
  constexpr int kB = kA + rows;
  const std::int64_t sum_bytes = ldc * std::int64_t{sizeof(float)};
  const auto sums = [&](int i) {
    return c + i / columns * kAmxSide * ldc + i % columns * kAmxSide;
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
        load_tile<kA + r>(left + r * kAmxSide * a.row_step,
                          a.row_step * std::int64_t{sizeof(BFloat16)});
      });
      unroll<columns>([&]<int i>() {
        constexpr int kNext = kB + i % (8 - kB);
        load_tile<kNext>(right + i * kAmxSide, b.row_step * std::int64_t{sizeof(Bf16Pair)});
        unroll<rows>([&]<int r>() { multiply_tiles<r * columns + i, kA + r, kNext>(); });
      });
      left += a.chunk_step;
      right += kAmxInner / 2 * b.row_step;
    }
  }
  unroll<rows * columns>([&]<int i>() { store_tile<i>(sums(i), sum_bytes); });
}

}  // namespace detail

/// c = a b, with `adds` c += a b, of so many tiles of rows and of columns. Needs AmxTiles.
template <bool adds>
void amx_product(const AmxRows& a, const AmxPairs& b, std::int64_t row_tiles,
                 std::int64_t column_tiles, const AmxTerms& terms, float* c, std::int64_t ldc) {
  for (std::int64_t row = 0; row < row_tiles; row += 2) {
    const AmxRows a_rows{a.data + row * kAmxSide * a.row_step, a.row_step, a.chunk_step};
    with_count<2>(std::min<std::int64_t>(2, row_tiles - row), [&]<int rows>() {
      constexpr std::int64_t kMost = 4 / rows;
      for (std::int64_t column = 0; column < column_tiles; column += kMost) {
        with_count<kMost>(std::min(kMost, column_tiles - column), [&]<int columns>() {
          detail::amx_block<adds, rows, columns>(a_rows, {b.data + column * kAmxSide, b.row_step},
                                                 terms, c + (row * ldc + column) * kAmxSide, ldc);
        });
      }
    });
  }
}

}  // namespace graft

#endif
