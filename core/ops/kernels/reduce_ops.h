#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/ops/kernels/nan_max.h"

namespace graft {

/// The operations that reductions are made of. Each maps an element (some after subtracting a
/// shift), combines two results, and finishes. `Part` is the type of short runs, `Acc` of long
/// ones: f32 sums run in f64, integers modulo 2^64, which gives wrap-around in any narrower type.
/// Floats go by Eigen's arrays (`map`, `combine`), integers, whose order is free, one by one
/// (`map_one`, `combine_one`) in loops that compilers vectorise: by Eigen they took 40 s to
/// compile. `Loop` is an operation that differs at most in how it finishes: one loop is compiled
/// for both.
namespace reducing {

template <class T>
using WidePart = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;
template <class T>
using WideAcc = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;

template <class T>
struct Sum {
  using Loop = Sum;
  using Part = WidePart<T>;
  using Acc = WideAcc<T>;
  static constexpr bool kShifted = false;
  template <class A>
  static A identity() {
    return A{0};
  }
  template <class X, class S>
  static auto map(const X& x, const S&) {
    return x.template cast<Part>();
  }
  static Part map_one(T x) { return static_cast<Part>(x); }
  template <class A, class B>
  static auto combine(const A& a, const B& b) {
    return a + b;
  }
  template <class A>
  static A combine_one(A a, A b) {
    return a + b;
  }
  static T finish(Acc total, std::int64_t, T) { return static_cast<T>(total); }
};

/// Of no integers: 0. Of no floats: NaN.
template <class T>
struct Mean : Sum<T> {
  static T finish(typename Sum<T>::Acc total, std::int64_t count, T) {
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return count == 0 ? T{0}
                        : static_cast<T>(static_cast<Wide>(total) / static_cast<Wide>(count));
    } else {
      return static_cast<T>(total / static_cast<double>(count));
    }
  }
};

template <class T>
struct L1 : Sum<T> {
  using Loop = std::conditional_t<std::is_unsigned_v<T>, Sum<T>, L1>;
  template <class X, class S>
  static auto map(const X& x, const S&) {
    return x.abs();
  }
  /// 0 - u instead of -x: the lowest value has no positive counterpart.
  static std::uint64_t map_one(T x) {
    const auto u = static_cast<std::uint64_t>(x);
    return x < 0 ? std::uint64_t{0} - u : u;
  }
};

template <class T>
struct SumSquare : Sum<T> {
  using Loop = SumSquare;
  template <class X, class S>
  static auto map(const X& x, const S&) {
    return x.template cast<typename Sum<T>::Part>().square();
  }
  static std::uint64_t map_one(T x) {
    const auto u = static_cast<std::uint64_t>(x);
    return u * u;
  }
};

template <class T>
struct L2 : SumSquare<T> {
  static T finish(typename Sum<T>::Acc total, std::int64_t, T) {
    return static_cast<T>(std::sqrt(static_cast<double>(total)));
  }
};

template <class T>
struct LogSum : Sum<T> {
  static T finish(double total, std::int64_t, T) { return static_cast<T>(std::log(total)); }
};

/// The shift is the maximum, so that no exponential overflows.
template <class T>
struct LogSumExp : Sum<T> {
  using Loop = LogSumExp;
  static constexpr bool kShifted = true;
  template <class X, class S>
  static auto map(const X& x, const S& shift) {
    return (x - shift).exp();
  }
  static T finish(double total, std::int64_t count, T shift) {
    const double log_total = std::log(total);
    return static_cast<T>(count > 0 && std::isfinite(shift) ? log_total + shift : log_total);
  }
};

/// Floats in f64, so that a long product leaves the range later.
template <class T>
struct Product {
  using Loop = Product;
  using Part = WideAcc<T>;
  using Acc = WideAcc<T>;
  static constexpr bool kShifted = false;
  template <class A>
  static A identity() {
    return A{1};
  }
  template <class X, class S>
  static auto map(const X& x, const S&) {
    return x.template cast<Part>();
  }
  static Part map_one(T x) { return static_cast<Part>(x); }
  template <class A, class B>
  static auto combine(const A& a, const B& b) {
    return a * b;
  }
  template <class A>
  static A combine_one(A a, A b) {
    return a * b;
  }
  static T finish(Acc total, std::int64_t, T) { return static_cast<T>(total); }
};

/// NaN wins, as in NumPy and PyTorch.
template <class T>
struct Max {
  using Loop = Max;
  using Part = T;
  using Acc = T;
  static constexpr bool kShifted = false;
  template <class A>
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::lowest();
  }
  template <class X, class S>
  static const X& map(const X& x, const S&) {
    return x;
  }
  static T map_one(T x) { return x; }
  template <class A, class B>
  static auto combine(const A& a, const B& b) {
    return nan_max(a, b);
  }
  template <class A>
  static A combine_one(A a, A b) {
    return a > b || a != a ? a : b;
  }
  static T finish(Acc total, std::int64_t, T) { return total; }
};

template <class T>
struct Min : Max<T> {
  using Loop = Min;
  template <class A>
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::max();
  }
  template <class A, class B>
  static auto combine(const A& a, const B& b) {
    return nan_min(a, b);
  }
  template <class A>
  static A combine_one(A a, A b) {
    return a < b || a != a ? a : b;
  }
};

}  // namespace reducing

}  // namespace graft
