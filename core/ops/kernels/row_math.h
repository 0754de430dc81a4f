#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "core/ops/kernels/reduce_row.h"

namespace graft {

/// y = exp(x - shift) for n contiguous elements; y may be x.
template <class T>
void exp_row(const T* x, std::int64_t n, T shift, T* y) {
  constexpr int kLanes = 16;
  using Lanes = Eigen::Array<T, kLanes, 1>;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Eigen::Map<Lanes>(y + i) = (Eigen::Map<const Lanes>(x + i) - shift).exp();
  }
  if (i < n) {  // a whole vector for the tail: scalar exponentials are several times slower
    Lanes tail = Lanes::Constant(shift);
    std::copy(x + i, x + n, tail.data());
    tail = (tail - shift).exp().eval();
    std::copy_n(tail.data(), n - i, y + i);
  }
}

/// Sum of f(first, count, buffer) over pieces of [0, n): f fills the buffer with the terms.
template <class T, class Fill>
double sum_of(std::int64_t n, Fill&& fill) {
  constexpr std::int64_t kPiece = 512;
  T terms[kPiece];
  double total = 0;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = std::min(kPiece, n - first);
    fill(first, count, static_cast<T*>(terms));
    total += reduce_row<reducing::Sum<T>>(static_cast<const T*>(terms), count, T{0});
  }
  return total;
}

/// Sum of exp(x - shift).
template <class T>
double sum_exp_row(const T* x, std::int64_t n, T shift) {
  return sum_of<T>(n, [&](std::int64_t first, std::int64_t count, T* terms) {
    exp_row(x + first, count, shift, terms);
  });
}

/// Sum of a * b.
template <class T>
double dot_row(const T* a, const T* b, std::int64_t n) {
  return sum_of<T>(n, [&](std::int64_t first, std::int64_t count, T* terms) {
    for (std::int64_t i = 0; i < count; ++i) terms[i] = a[first + i] * b[first + i];
  });
}

template <class T>
T max_row(const T* x, std::int64_t n) {
  return reduce_row<reducing::Max<T>>(x, n, T{0});
}

}  // namespace graft
