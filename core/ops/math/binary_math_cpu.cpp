#include <cmath>
#include <limits>
#include <optional>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The nearest integer of type T towards zero; NaN gives 0, what lies outside of T its limit.
template <class T>
T saturate(double x) {
  constexpr double kEnd = -2.0 * static_cast<double>(std::numeric_limits<T>::min() / 2);
  if (x >= kEnd) return std::numeric_limits<T>::max();
  if (x < -kEnd) return std::numeric_limits<T>::min();
  return x == x ? static_cast<T>(x) : T{0};
}

/// Wraps round. A negative exponent gives the reciprocal rounded to zero (ONNX does not say).
template <class T, class E>
T integer_power(T base, E exponent) {
  if constexpr (std::is_signed_v<E>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  auto square = wrapping(base);
  decltype(square) result = 1;
  for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1U) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T, class E>
T power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return integer_power(base, exponent);
  } else if constexpr (std::is_integral_v<T>) {
    return saturate<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else if constexpr (std::is_same_v<T, E>) {
    return std::pow(base, exponent);
  } else {
    return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}

using BaseTypes = TypeList<float, double, std::int64_t, std::int32_t>;

/// An exponent known before the run for which there is a fast way.
RunFunction make_constant_pow(const KernelRequest& request) {
  const Tensor exponent = request.constant(1);
  if (!exponent.defined() || exponent.size() != 1) return {};
  const double e = to_double(exponent).front();
  const auto unary = [&](auto function) { return dispatch_unary(FloatTypes{}, request, function); };
  if (e == 1.0) return unary([](auto x) { return x; });
  if (e == 2.0) return unary([](auto x) { return x * x; });
  if (e == 3.0) return unary([](auto x) { return x * x * x; });
  if (e == -1.0) return unary([](auto x) { return 1 / x; });
  if (e == -2.0) return unary([](auto x) { return 1 / (x * x); });
  // pow differs from the square root in -0 -> +0 and -infinity -> +infinity.
  const auto root = []<class T>(T x) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return x == -kInfinity ? kInfinity : std::sqrt(x + T{0});
  };
  if (e == 0.5) return unary(root);
  if (e == -0.5) return unary([root](auto x) { return 1 / root(x); });
  return {};
}

RunFunction make_pow(const KernelRequest& request) {
  RunFunction run;
  visit_kernel_dtype(BaseTypes{}, request.dtype(0), [&]<class T>() {
    visit_kernel_dtype(NumericTypes{}, request.dtype(1), [&]<class E>() {
      run = run_function<T, T, E>([](T a, E b) { return power(a, b); });
    });
  });
  return run;
}

/// Sign of the dividend. An integer modulo 0 has no value; it gives 0 instead of a trap.
template <class T>
T truncated_mod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
}

/// Sign of the divisor, also that of zero.
template <class T>
T floored_mod(T a, T b) {
  const T rest = truncated_mod(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (rest == 0) return std::copysign(T{0}, b);
  }
  return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

RunFunction make_mod(const KernelRequest& request) {
  if (request.attributes().get_int("fmod", 0) != 0) {
    return dispatch_binary(NumericTypes{}, request,
                           []<class T>(T a, T b) { return truncated_mod(a, b); });
  }
  return dispatch_binary(NumericTypes{}, request,
                         []<class T>(T a, T b) { return floored_mod(a, b); });
}

}  // namespace

void register_binary_math_cpu(KernelRegistry& registry) {
  registry.add({.op = "Pow", .name = "constant", .make_run = make_constant_pow});
  registry.add({.op = "Pow", .name = "plain", .make_run = make_pow});
  registry.add({.op = "Mod", .name = "plain", .make_run = make_mod});
}

}  // namespace graft
