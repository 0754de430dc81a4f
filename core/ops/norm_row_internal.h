#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/shape.h"

namespace graft {

/// Whether a parameter of a normalization over the axes of x from `axis` on has one element for
/// each that is normalized together (leading ones aside), as nearly always. Else it broadcasts
/// within rows or varies from row to row.
inline bool is_row_parameter(const Shape& x, int axis, const Shape& parameter) {
  const int extra = parameter.rank() - (x.rank() - axis);
  if (extra < 0) return false;
  for (int i = 0; i < parameter.rank(); ++i) {
    if (parameter[i] != (i < extra ? 1 : x[axis + i - extra])) return false;
  }
  return true;
}

// Sums and moments of contiguous runs, as normalizations need them.

/// Two sums over n elements: add(i, a, b) adds the terms of element i to a and b. Terms run in T,
/// 16 to a lane, then in f64; the order depends on n alone.
template <class T>
struct TwoSums {
  double a;
  double b;

  template <class Add>
  TwoSums(std::int64_t n, Add&& add) {
    Wide total_a{};
    Wide total_b{};
    std::int64_t i = 0;
    while (n - i >= kLanes) {
      T lanes_a[kLanes] = {};
      T lanes_b[kLanes] = {};
      const std::int64_t last = i + std::min(16 * kLanes, (n - i) / kLanes * kLanes);
      for (; i < last; i += kLanes) {
#pragma omp simd
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          add(i + lane, lanes_a[lane], lanes_b[lane]);
        }
      }
      fold(lanes_a, total_a);
      fold(lanes_b, total_b);
    }
    if (i < n) {
      T lanes_a[kLanes] = {};
      T lanes_b[kLanes] = {};
      for (; i + kStep <= n; i += kStep) {
#pragma omp simd
        for (std::int64_t lane = 0; lane < kStep; ++lane) {
          add(i + lane, lanes_a[lane], lanes_b[lane]);
        }
      }
      for (std::int64_t lane = 0; i < n; ++i, ++lane) add(i, lanes_a[lane], lanes_b[lane]);
      fold(lanes_a, total_a);
      fold(lanes_b, total_b);
    }
    a = sum(total_a);
    b = sum(total_b);
  }

 private:
  static constexpr std::int64_t kLanes = 32;
  static constexpr std::int64_t kStep = 8;  // of the tail
  using Wide = double[8];

  static void fold(const T* lanes, Wide& total) {
    for (int i = 0; i < 8; ++i) {
      total[i] += (static_cast<double>(lanes[i]) + static_cast<double>(lanes[i + 8])) +
                  (static_cast<double>(lanes[i + 16]) + static_cast<double>(lanes[i + 24]));
    }
  }
  static double sum(const Wide& t) {
    return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
  }
};

/// Mean and 1 / sqrt(variance + epsilon) of n elements, the variance that of the population. Two
/// passes: squares of differences lose no digits to a large mean.
template <class T>
struct Moments {
  double mean;
  double inv_std;

  Moments(const T* x, std::int64_t n, double epsilon) {
    const double share = n == 0 ? 0.0 : 1.0 / static_cast<double>(n);
    mean = TwoSums<T>(n, [x](std::int64_t i, T& sum, T&) { sum += x[i]; }).a * share;
    const T middle = static_cast<T>(mean);
    const TwoSums<T> squares(n, [x, middle](std::int64_t i, T& sum, T&) {
      const T difference = x[i] - middle;
      sum += difference * difference;
    });
    inv_std = 1.0 / std::sqrt(squares.a * share + epsilon);
  }
};

/// 0 and 1 / sqrt(mean square + epsilon): what RMS normalization has for moments.
template <class T>
struct RootMeanSquare {
  double mean = 0;
  double inv_std;

  RootMeanSquare(const T* x, std::int64_t n, double epsilon) {
    const double share = n == 0 ? 0.0 : 1.0 / static_cast<double>(n);
    const TwoSums<T> sums(n, [x](std::int64_t i, T& squares, T&) { squares += x[i] * x[i]; });
    inv_std = 1.0 / std::sqrt(sums.a * share + epsilon);
  }
};

}  // namespace graft
