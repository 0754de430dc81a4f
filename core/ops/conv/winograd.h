#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/kernels/lanes.h"

namespace graft {

// Convolution by 3 x 3 taps with a stride of 1 in fewer products: F(2x2, 3x3) of Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks" (https://arxiv.org/abs/1509.09308). Two by
// two targets and the four by four sources that they meet are a tile. Sources and weight are each
// turned into 16 numbers a channel, and what these give, multiplied and summed over channels, into
// the targets: 16 products where taps one by one take 36.

inline constexpr std::int64_t kTileTargets = 2;  ///< a side
inline constexpr std::int64_t kTileSources = 4;  ///< a side
inline constexpr std::int64_t kTileTaps = 9;
inline constexpr int kTileNumbers = 16;

/// Whether differences of numbers with themselves, added up, are zero: they are unless one of them
/// is infinite or NaN.
template <class V>
bool are_zero(const V& v) {
  float numbers[lane_count<V>()];
  store(numbers, v);
  return std::ranges::all_of(numbers, [](float number) { return number == 0; });
}

/// The 16 numbers of `lanes` channels. `from`: the tile's first source; steps in elements. The n-th
/// goes to `to` + n * step.
template <int lanes>
void turn_sources(const float* from, std::int64_t row, std::int64_t column, float* to,
                  std::int64_t step) {
  Lanes<lanes> by_rows[4][4];
  unroll<4>([&]<int c>() {
    Lanes<lanes> d[4];
    unroll<4>([&]<int r>() { d[r] = load<lanes>(from + r * row + c * column); });
    by_rows[0][c] = d[0] - d[2];
    by_rows[1][c] = d[1] + d[2];
    by_rows[2][c] = d[2] - d[1];
    by_rows[3][c] = d[1] - d[3];
  });
  unroll<4>([&]<int r>() {
    const auto& d = by_rows[r];
    store(to + (4 * r) * step, d[0] - d[2]);
    store(to + (4 * r + 1) * step, d[1] + d[2]);
    store(to + (4 * r + 2) * step, d[2] - d[1]);
    store(to + (4 * r + 3) * step, d[1] - d[3]);
  });
}

/// The same of a weight's nine taps, `tap` apart.
template <int lanes>
void turn_weight(const float* from, std::int64_t tap, float* to, std::int64_t step) {
  const auto turn = [](const Lanes<lanes>& a, const Lanes<lanes>& b, const Lanes<lanes>& c,
                       auto&& take) {
    take(0, a);
    take(1, 0.5F * (a + b + c));
    take(2, 0.5F * (a - b + c));
    take(3, c);
  };
  Lanes<lanes> by_rows[4][3];
  unroll<3>([&]<int c>() {
    const auto at = [&](int r) { return load<lanes>(from + (3 * r + c) * tap); };
    turn(at(0), at(1), at(2), [&](int r, const Lanes<lanes>& v) { by_rows[r][c] = v; });
  });
  unroll<4>([&]<int r>() {
    const auto& g = by_rows[r];
    turn(g[0], g[1], g[2],
         [&](int c, const Lanes<lanes>& v) { store(to + (4 * r + c) * step, v); });
  });
}

/// The same of a tile's targets, for weight gradients.
template <int lanes>
void turn_targets(const float* from, std::int64_t row, std::int64_t column, float* to,
                  std::int64_t step) {
  const auto turn = [](const Lanes<lanes>& a, const Lanes<lanes>& b, auto&& take) {
    take(0, a);
    take(1, 0.5F * (a + b));
    take(2, 0.5F * (a - b));
    take(3, b);
  };
  Lanes<lanes> by_rows[4][2];
  unroll<2>([&]<int c>() {
    turn(load<lanes>(from + c * column), load<lanes>(from + row + c * column),
         [&](int r, const Lanes<lanes>& v) { by_rows[r][c] = v; });
  });
  unroll<4>([&]<int r>() {
    turn(by_rows[r][0], by_rows[r][1],
         [&](int c, const Lanes<lanes>& v) { store(to + (4 * r + c) * step, v); });
  });
}

/// The nine taps of a weight gradient, [tap][`lanes`], of 16 sums `step` apart.
template <int lanes>
void turn_to_taps(const float* from, std::int64_t step, Lanes<lanes> (&taps)[kTileTaps]) {
  const auto turn = [](const auto& m, auto&& take) {
    take(0, m[0] + m[1] + m[2]);
    take(1, m[1] - m[2]);
    take(2, m[1] + m[2] - m[3]);
  };
  Lanes<lanes> by_rows[3][4];
  unroll<4>([&]<int c>() {
    Lanes<lanes> m[4];
    unroll<4>([&]<int r>() { m[r] = load<lanes>(from + (4 * r + c) * step); });
    turn(m, [&](int r, const Lanes<lanes>& v) { by_rows[r][c] = v; });
  });
  unroll<3>([&]<int r>() {
    turn(by_rows[r], [&](int c, const Lanes<lanes>& v) { taps[3 * r + c] = v; });
  });
}

/// The four targets, [row][column], of 16 sums `step` apart. A target is made of sources that it
/// meets alone.
template <int lanes>
void turn_sums(const float* from, std::int64_t step, Lanes<lanes> (&targets)[2][2]) {
  Lanes<lanes> by_rows[2][4];
  unroll<4>([&]<int c>() {
    Lanes<lanes> m[4];
    unroll<4>([&]<int r>() { m[r] = load<lanes>(from + (4 * r + c) * step); });
    by_rows[0][c] = m[0] + m[1] + m[2];
    by_rows[1][c] = m[1] - m[2] - m[3];
  });
  unroll<2>([&]<int r>() {
    const auto& m = by_rows[r];
    targets[r][0] = m[0] + m[1] + m[2];
    targets[r][1] = m[1] - m[2] - m[3];
  });
}

}  // namespace graft
