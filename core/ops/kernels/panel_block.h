#pragma once

// Products of two panels (operand_panels.h) by the processor's tiles: the first four hold the sums,
// the others operands. One panel is kept and met by many, the other passes by once and meanwhile
// lies in the first cache.
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/operand_packer.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// A block of a result.
struct PanelBlock {
  float* data;
  std::int64_t step;
  std::int64_t rows;
  std::int64_t columns;

  bool is_whole() const { return rows == kPanelSide && columns == kPanelSide; }
  /// Asks for the lines of a share of the rows, which are soon written.
  void prefetch(std::int64_t share, std::int64_t shares) const {
    constexpr int kForWriting = 1;
    constexpr std::int64_t kLine = 64 / sizeof(float);
    for (std::int64_t row = rows * share / shares; row < rows * (share + 1) / shares; ++row) {
      for (std::int64_t i = 0; i < kPanelSide; i += kLine) {
        __builtin_prefetch(data + row * step + i, kForWriting);
      }
    }
  }
};

namespace detail {

inline constexpr std::int64_t kTileRow = kBf16Side * std::int64_t{sizeof(Bf16Pair)};

/// A tile that need not stay in the first cache.
template <int tile>
void load_tile_once(const void* from) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(kTileRow), "i"(tile)
               : "memory");
}

}  // namespace detail

inline void clear_sums() {
  unroll<4>([&]<int i>() { detail::clear_tile<i>(); });
}

inline void load_sums(const float* from, std::int64_t step) {
  const std::int64_t bytes = step * std::int64_t{sizeof(float)};
  detail::load_tile<0>(from, bytes);
  detail::load_tile<1>(from + kBf16Side, bytes);
  detail::load_tile<2>(from + kBf16Side * step, bytes);
  detail::load_tile<3>(from + kBf16Side * step + kBf16Side, bytes);
}

inline void store_sums(float* to, std::int64_t step) {
  const std::int64_t bytes = step * std::int64_t{sizeof(float)};
  detail::store_tile<0>(to, bytes);
  detail::store_tile<1>(to + kBf16Side, bytes);
  detail::store_tile<2>(to + kBf16Side * step, bytes);
  detail::store_tile<3>(to + kBf16Side * step + kBf16Side, bytes);
}

/// Adds the product of two chunks to the sums, whose rows the kept one gives with keeps_left. Small
/// parts come first, so that what they add up to is not lost. In between, while the tiles are busy,
/// `packer` does a unit of its own.
template <bool keeps_left, class Packer>
void add_chunk(const PanelChunk& kept, const PanelChunk& passing, Packer& packer) {
  constexpr int kProducts = kParts * (kParts + 1) / 2;
  constexpr int kStepsAProduct = (Packer::kSteps + kProducts - 1) / kProducts;
  constexpr int kKept = 4;
  constexpr int kPassing = 6;
  const bool packs = packer.has_unit();
  if (packs) packer.begin_unit();
  const auto add = [&]<int half>(int part) {
    constexpr int kTile = kPassing + half;
    detail::load_tile<kTile>(passing[part][half], detail::kTileRow);
    if constexpr (keeps_left) {
      detail::multiply_tiles<half, kKept, kTile>();
      detail::multiply_tiles<2 + half, kKept + 1, kTile>();
    } else {
      detail::multiply_tiles<2 * half, kTile, kKept>();
      detail::multiply_tiles<2 * half + 1, kTile, kKept + 1>();
    }
  };
  unroll<kParts>([&]<int fewer>() {
    detail::load_tile_once<kKept>(kept[kParts - 1 - fewer][0]);
    detail::load_tile_once<kKept + 1>(kept[kParts - 1 - fewer][1]);
    unroll<fewer + 1>([&]<int i>() {
      add.template operator()<0>(fewer - i);
      add.template operator()<1>(fewer - i);
      constexpr int kFirst = (fewer * (fewer + 1) / 2 + i) * kStepsAProduct;
      unroll<kStepsAProduct>([&]<int step>() {
        if constexpr (kFirst + step < Packer::kSteps) {
          if (packs) packer.template step<kFirst + step>();
        }
      });
    });
  });
  if (packs) packer.end_unit();
}

/// Writes sums, rows of kPanelSide, and what `before` points to where it does.
inline void write_sums(const float* sums, const Addend& before, const PanelBlock& c) {
  for (std::int64_t row = 0; row < c.rows; ++row, sums += kPanelSide) {
    const float* const from = before.from(row, 0).data;
    float* const to = c.data + row * c.step;
    for_each_lanes(c.columns, [&]<int lanes>(std::int64_t i) {
      const Lanes<lanes> sum = load<lanes>(sums + i);
      store(to + i, from == nullptr ? sum : load<lanes>(from + i) + sum);
    });
  }
}

}  // namespace graft

#endif
