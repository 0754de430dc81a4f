#pragma once

// The processor's tiles (AMX): registers of 16 rows of 64 bytes. One instruction adds 16 rows of 32
// numbers of bf16 (a) times 32 rows of 16 numbers (b) to 16 x 16 sums of f32 (c). It reads two rows
// of b as one: a pair is what two rows hold in a column, side by side. Builds for certain models,
// which are to be small, do without: kIsForCertainModels, where the preprocessor asks.
#if defined(__x86_64__) && defined(__AVX512F__) && !defined(GRAFT_KERNEL_DTYPES)
#define GRAFT_HAS_BF16_PRODUCTS

#include <cstdint>

#include "core/ops/kernels/amx.h"

namespace graft {

inline constexpr std::int64_t kBf16Side = 16;   ///< rows, and columns of sums
inline constexpr std::int64_t kBf16Inner = 32;  ///< numbers of a row of a
using Bf16Pair = std::uint32_t;

/// Sets up all tiles of this thread in full size, and gives them back: a thread that holds tiles is
/// slower to switch, and oneDNN sets up its own. Nothing where the processor has none.
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
    if (may_use_amx()) asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~AmxTiles() {
    if (may_use_amx()) asm volatile("tilerelease" : :);
  }
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

}  // namespace graft

#endif
