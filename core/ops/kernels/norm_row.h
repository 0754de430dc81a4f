#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/shape.h"
#include "core/ops/kernels/lanes.h"

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

/// 8 numbers that are computed together.
template <class T>
struct EightOf {
  using type [[gnu::vector_size(8 * sizeof(T))]] = T;
};
template <class T>
using Eight = typename EightOf<T>::type;

/// What V holds, one number or eight, from `from` on.
template <class V, class T>
V load_as(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

/// Two sums over n elements: add(i, a, b) adds the terms of elements i and on to a and b, which are
/// one number or Eight. Terms run in T, 16 to a lane, then in f64; the order depends on n alone.
template <class T>
struct TwoSums {
  double a;
  double b;

  template <class Add>
  TwoSums(std::int64_t n, Add&& add) {
    Eight<double> total_a{};
    Eight<double> total_b{};
    std::int64_t i = 0;
    while (n - i >= kLanes) {
      Eight<T> lanes_a[4] = {};
      Eight<T> lanes_b[4] = {};
      const std::int64_t last = i + std::min(16 * kLanes, (n - i) / kLanes * kLanes);
      for (; i < last; i += kLanes) {
        unroll<4>([&]<int part>() { add(i + 8 * part, lanes_a[part], lanes_b[part]); });
      }
      fold(lanes_a, total_a);
      fold(lanes_b, total_b);
    }
    if (i < n) {
      Eight<T> tail_a{};
      Eight<T> tail_b{};
      for (; i + 8 <= n; i += 8) add(i, tail_a, tail_b);
      for (int lane = 0; i < n; ++i, ++lane) {
        T one_a{};
        T one_b{};
        add(i, one_a, one_b);
        tail_a[lane] += one_a;
        tail_b[lane] += one_b;
      }
      total_a += __builtin_convertvector(tail_a, Eight<double>);
      total_b += __builtin_convertvector(tail_b, Eight<double>);
    }
    a = sum(total_a);
    b = sum(total_b);
  }

 private:
  static constexpr std::int64_t kLanes = 32;

  static void fold(const Eight<T> (&lanes)[4], Eight<double>& total) {
    total += (__builtin_convertvector(lanes[0], Eight<double>) +
              __builtin_convertvector(lanes[1], Eight<double>)) +
             (__builtin_convertvector(lanes[2], Eight<double>) +
              __builtin_convertvector(lanes[3], Eight<double>));
  }
  static double sum(const Eight<double>& t) {
    const auto half =
        __builtin_shufflevector(t, t, 0, 1, 2, 3) + __builtin_shufflevector(t, t, 4, 5, 6, 7);
    const auto quarter =
        __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return quarter[0] + quarter[1];
  }
};

/// A mean as kernels subtract it: (x - middle) - rest. `rest` is 0 but where T is too coarse for
/// the mean: f32 numbers round 10^7 are 1 apart, and so may the mean be from its rounded form.
template <class T>
struct Center {
  T middle;
  T rest;
};

/// Mean and 1 / sqrt(variance + epsilon) of n elements, the variance that of the population. Two
/// passes: squares of differences lose no digits to a large mean. Where the mean is far from 0, a
/// third finds what the first missed of it (Chan, Golub and LeVeque, "Algorithms for computing the
/// sample variance", 1983, equation (1.7)).
template <class T>
struct Moments {
  double mean;
  double inv_std;
  Center<T> center;

  Moments(const T* x, std::int64_t n, double epsilon) {
    const double share = n == 0 ? 0.0 : 1.0 / static_cast<double>(n);
    mean = TwoSums<T>(n, [x]<class V>(std::int64_t i, V& sum, V&) { sum += load_as<V>(x + i); }).a *
           share;
    const T middle = static_cast<T>(mean);
    const TwoSums<T> squares(n, [x, middle]<class V>(std::int64_t i, V& sum, V&) {
      const V difference = load_as<V>(x + i) - middle;
      sum += difference * difference;
    });
    const double variance = squares.a * share;
    inv_std = 1.0 / std::sqrt(variance + epsilon);
    center = {middle, T{0}};
    constexpr double kFar = 100;  // deviations: T then still tells a thousandth of one
    if (std::abs(mean) * inv_std > kFar) correct(x, n, variance, epsilon);
  }

 private:
  void correct(const T* x, std::int64_t n, double variance, double epsilon) {
    const TwoSums<T> differences(n, [x, this]<class V>(std::int64_t i, V& sum, V&) {
      sum += load_as<V>(x + i) - center.middle;
    });
    const double missed = differences.a / static_cast<double>(n);
    if (!std::isfinite(missed)) return;
    mean = static_cast<double>(center.middle) + missed;
    inv_std = 1.0 / std::sqrt(std::max(variance - missed * missed, 0.0) + epsilon);
    center.rest = static_cast<T>(missed);
  }
};

/// 0 and 1 / sqrt(mean square + epsilon): what RMS normalization has for moments.
template <class T>
struct RootMeanSquare {
  double mean = 0;
  double inv_std;
  Center<T> center{};

  RootMeanSquare(const T* x, std::int64_t n, double epsilon) {
    const double share = n == 0 ? 0.0 : 1.0 / static_cast<double>(n);
    const TwoSums<T> sums(n, [x]<class V>(std::int64_t i, V& squares, V&) {
      const V v = load_as<V>(x + i);
      squares += v * v;
    });
    inv_std = 1.0 / std::sqrt(sums.a * share + epsilon);
  }
};

}  // namespace graft
