#pragma once

// Matrices that turn round in registers.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/ops/kernels/lanes.h"

namespace graft {
namespace detail {

// Always inlined and without lambdas: rows that are handed on leave their registers.

/// Of each four numbers of a and b: the first two of both in turns, pieces of `piece` numbers, and
/// the last two. One instruction each on most processors.
template <int piece, class V, int... lane>
[[gnu::always_inline]] inline void zip_fours(V& a, V& b,
                                             std::integer_sequence<int, lane...> /*lanes*/) {
  constexpr int kLanes = sizeof...(lane);
  constexpr auto kFrom = [](int at) {
    const int within = at % 4;
    const int turn = within / piece;
    return at - within + turn / 2 * piece + within % piece + turn % 2 * kLanes;
  };
  const V first = __builtin_shufflevector(a, b, kFrom(lane)...);
  const V last = __builtin_shufflevector(a, b, (kFrom(lane) + 2)...);
  a = first;
  b = last;
}

/// Swaps the off-diagonal halves of each 2 `step` x 2 `step` block.
template <int step, class V, int... lane>
[[gnu::always_inline]] inline void swap_blocks(V& a, V& b,
                                               std::integer_sequence<int, lane...> /*lanes*/) {
  constexpr int kLanes = sizeof...(lane);
  const V low =
      __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane : lane - step + kLanes)...);
  const V high =
      __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane + step : lane + kLanes)...);
  a = low;
  b = high;
}

/// What row i begins in a step: the four rows from i on turn round their squares of four; in later
/// steps, i and i + step swap blocks.
template <int step, int i, class V, class AllLanes>
[[gnu::always_inline]] inline void turn_at(V* rows, AllLanes lanes) {
  if constexpr (step > 2) {
    if constexpr ((i & step) == 0) swap_blocks<step>(rows[i], rows[i + step], lanes);
  } else if constexpr (i % 4 == 0) {
    zip_fours<1>(rows[i], rows[i + 1], lanes);
    zip_fours<1>(rows[i + 2], rows[i + 3], lanes);
    zip_fours<2>(rows[i], rows[i + 2], lanes);
    zip_fours<2>(rows[i + 1], rows[i + 3], lanes);
    std::swap(rows[i + 1], rows[i + 2]);
  }
}

/// A matrix of as many rows as a row has numbers: squares of four, then blocks up to `step`.
template <int step, class V, int... row>
[[gnu::always_inline]] inline void transpose_blocks(V* rows,
                                                    std::integer_sequence<int, row...> all) {
  if constexpr (step > 2) transpose_blocks<step / 2>(rows, all);
  (turn_at<step, row>(rows, all), ...);
}

/// Rows that fit a register each.
template <int side>
[[gnu::always_inline]] inline void transpose_in_registers(Lanes<side> (&rows)[side]) {
  transpose_blocks<side / 2>(&rows[0], std::make_integer_sequence<int, side>());
}

}  // namespace detail

/// A matrix of as many rows as columns: in registers, or square by square.
template <class V, std::size_t side>
[[gnu::always_inline]] inline void transpose(V (&rows)[side]) {
  constexpr auto kRows = static_cast<int>(side);
  static_assert(lane_count<V>() == kRows && kRows >= 4);
  if constexpr (kRows <= kRegisterLanes) {
    detail::transpose_in_registers<kRows>(rows);
  } else {
    constexpr int kSide = kRegisterLanes;
    auto* const numbers = reinterpret_cast<float*>(rows);
    for (int first = 0; first < kRows; first += kSide) {
      for (int second = 0; second <= first; second += kSide) {
        float* const below = numbers + first * kRows + second;
        float* const above = numbers + second * kRows + first;
        Lanes<kSide> one[kSide];
        Lanes<kSide> other[kSide];
        unroll<kSide>([&]<int i>() { one[i] = load<kSide>(below + i * kRows); });
        unroll<kSide>([&]<int i>() { other[i] = load<kSide>(above + i * kRows); });
        detail::transpose_in_registers<kSide>(one);
        detail::transpose_in_registers<kSide>(other);
        unroll<kSide>([&]<int i>() { store(above + i * kRows, one[i]); });
        unroll<kSide>([&]<int i>() { store(below + i * kRows, other[i]); });
      }
    }
  }
}

/// Transposes what 16 sources hold: calls take(c, v) for c in [0, columns), where lane i of v is
/// from[i][c]. A null source gives 0.
template <class Take>
void for_each_column(const float* const (&from)[16], std::int64_t columns, Take&& take) {
  std::int64_t c = 0;
  for (; c + 16 <= columns; c += 16) {
    Lanes16 rows[16];
    unroll<16>([&]<int i>() { rows[i] = from[i] == nullptr ? Lanes16{} : load<16>(from[i] + c); });
    transpose(rows);
    unroll<16>([&]<int i>() { take(c + i, rows[i]); });
  }
  for (; c < columns; ++c) {
    float numbers[16];
    for (int i = 0; i < 16; ++i) numbers[i] = from[i] == nullptr ? 0.0F : from[i][c];
    take(c, load<16>(numbers));
  }
}

/// The reverse: lane i of column(c) goes to to[i][c]; a null target drops it.
template <class T, class Column>
void store_columns(std::int64_t columns, Column&& column, T* const (&to)[16]) {
  std::int64_t c = 0;
  for (; c + 16 <= columns; c += 16) {
    Lanes16 rows[16];
    unroll<16>([&]<int i>() { rows[i] = column(c + i); });
    transpose(rows);
    unroll<16>([&]<int i>() {
      if (to[i] != nullptr) store(to[i] + c, rows[i]);
    });
  }
  for (; c < columns; ++c) {
    float numbers[16];
    store(numbers, Lanes16(column(c)));
    for (int i = 0; i < 16; ++i) {
      if (to[i] != nullptr) to[i][c] = T(numbers[i]);
    }
  }
}

}  // namespace graft
