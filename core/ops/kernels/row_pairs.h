#pragma once

#include <cstdint>
#include <cstring>

#include "core/ops/kernels/bf16_panels.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// Pairs of rows, each with the one behind it: those of even rows, then those of odd ones, so that
/// tiles of every second row lie in one piece.
class RowPairs {
 public:
  static constexpr std::int64_t kWidth = 2 * kBf16Side;  ///< pairs from row to row

  /// Of rows `step` numbers apart, that of place p beginning at `x + p * step`; zeros where p is
  /// negative. places: rows + 1.
  template <int tiles>
  void fill(const std::int32_t* places, std::int64_t rows, const BFloat16* x, std::int64_t step,
            Bf16Pair* pairs) {
    static constexpr BFloat16 kZeros[kWidth] = {};
    constexpr std::int64_t kRowsAhead = 32;
    const auto row_at = [&](std::int32_t place) { return place < 0 ? kZeros : x + place * step; };
    const BFloat16* row = row_at(places[0]);
    for (std::int64_t i = 0; i < rows; ++i) {
      const BFloat16* const next = row_at(places[i + 1]);
      Bf16Pair* const to = pairs + pair_row(rows, i) * kWidth;
      unroll<tiles>([&]<int t>() {
        const Lanes16 both = detail::pairs_of(row + t * kBf16Side, next + t * kBf16Side);
        std::memcpy(to + t * kBf16Side, &both, sizeof(both));
        Bits bits;
        std::memcpy(&bits, &both, sizeof(bits));
        bits &= kMagnitude;
        largest_ = bits > largest_ ? bits : largest_;
      });
      __builtin_prefetch(next + kRowsAhead * step);
      row = next;
    }
  }

  /// Where the pairs of a row begin, in rows.
  static std::int64_t pair_row(std::int64_t rows, std::int64_t row) {
    return row % 2 * ((rows + 1) / 2) + row / 2;
  }

  bool are_finite() const {
    bool are = true;
    for (int i = 0; i < 32; ++i) are &= largest_[i] < kInfinity;
    return are;
  }

 private:
  using Bits = LaneBits<32>::Short;
  static constexpr std::uint16_t kMagnitude = 0x7fff;
  static constexpr std::uint16_t kInfinity = 0x7f80;

  Bits largest_ = {};
};

}  // namespace graft

#endif
