#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/ops/image/resize.h"

namespace graft {

/// A ResizeTable with weights of the kernel's type. T is no number where elements are only moved.
template <class T>
struct ResizeTaps {
  explicit ResizeTaps(const ResizeTable& table)
      : input(table.input),
        output(table.output),
        count(table.taps),
        only_moves(table.only_moves()),
        first(table.first) {
    if constexpr (std::is_floating_point_v<T>)
      weights.assign(table.weights.begin(), table.weights.end());
  }
  std::int64_t start(std::int64_t o) const { return first[static_cast<std::size_t>(o)]; }
  T weight(std::int64_t o, std::int64_t tap) const {
    return weights[static_cast<std::size_t>(tap * output + o)];
  }

  std::int64_t input;
  std::int64_t output;
  std::int64_t count;
  bool only_moves;
  std::vector<std::int32_t> first;
  std::vector<T> weights;
};

/// Output row `o` from rows of `width` elements that lie `stride` apart; `x` is the first it needs.
template <class T>
void combine_rows(const ResizeTaps<T>& taps, std::int64_t o, const T* x, std::int64_t stride,
                  std::int64_t width, T* y) {
  if (taps.only_moves) {
    std::memcpy(y, x, static_cast<std::size_t>(width) * sizeof(T));
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    const T first = taps.weight(o, 0);
    if (taps.count == 1) {
      for (std::int64_t i = 0; i < width; ++i) y[i] = first * x[i];
      return;
    }
    const T second = taps.weight(o, 1);
    for (std::int64_t i = 0; i < width; ++i) y[i] = first * x[i] + second * x[i + stride];
    for (std::int64_t tap = 2; tap < taps.count; ++tap) {
      const T weight = taps.weight(o, tap);
      const T* const row = x + tap * stride;
      for (std::int64_t i = 0; i < width; ++i) y[i] += weight * row[i];
    }
  }
}

namespace detail {

template <int count, class T>
void combine_few_columns(const ResizeTaps<T>& taps, const T* x, T* y) {
  const std::int32_t* const first = taps.first.data();
  const T* const weights = taps.weights.data();
  for (std::int64_t o = 0; o < taps.output; ++o) {
    T sum = weights[o] * x[first[o]];
    for (int tap = 1; tap < count; ++tap) sum += weights[tap * taps.output + o] * x[first[o] + tap];
    y[o] = sum;
  }
}

}  // namespace detail

/// All output elements of a row.
template <class T>
void combine_columns(const ResizeTaps<T>& taps, const T* x, T* y) {
  if (taps.only_moves) {
    for (std::int64_t o = 0; o < taps.output; ++o) y[o] = x[taps.start(o)];
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (taps.count == 2) return detail::combine_few_columns<2>(taps, x, y);
    if (taps.count == 4) return detail::combine_few_columns<4>(taps, x, y);
    detail::combine_few_columns<1>(taps, x, y);
    const std::int32_t* const first = taps.first.data();
    for (std::int64_t tap = 1; tap < taps.count; ++tap) {
      const T* const weights = taps.weights.data() + tap * taps.output;
      for (std::int64_t o = 0; o < taps.output; ++o) y[o] += weights[o] * x[first[o] + tap];
    }
  }
}

}  // namespace graft
