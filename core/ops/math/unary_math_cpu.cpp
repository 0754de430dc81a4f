#include <cmath>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/vector_math.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// A kernel for floats, from a stateless lambda of one element.
template <class Function>
KernelDef float_kernel(std::string_view op, Function) {
  return {.op = op, .name = "plain", .make_run = [](const KernelRequest& request) {
            return dispatch_unary(FloatTypes{}, request, Function{});
          }};
}

template <class Types = NumericTypes, class Function>
KernelDef numeric_kernel(std::string_view op, Function) {
  return {.op = op, .name = "plain", .make_run = [](const KernelRequest& request) {
            return dispatch_unary(Types{}, request, Function{});
          }};
}

}  // namespace

void register_unary_math_cpu(KernelRegistry& registry) {
  registry.add(numeric_kernel<Signless<NumericTypes>>(
      "Neg", []<class T>(T x) { return static_cast<T>(-wrapping(x)); }));
  registry.add(numeric_kernel("Abs", []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < T{} ? static_cast<T>(-wrapping(x)) : x;
    }
  }));
  registry.add(float_kernel("Sqrt", [](auto x) { return std::sqrt(x); }));
  registry.add(float_kernel("Reciprocal", [](auto x) { return 1 / x; }));
  registry.add(float_kernel("Exp", [](auto x) { return vector_math::exp(x); }));
  registry.add(float_kernel("Log", [](auto x) { return vector_math::log(x); }));
  registry.add(float_kernel("Erf", [](auto x) { return vector_math::erf(x); }));

  // NaN has no sign and stays NaN.
  registry.add(numeric_kernel("Sign", []<class T>(T x) {
    return x > T{} ? static_cast<T>(1) : x < T{} ? static_cast<T>(-1) : x;
  }));
  registry.add(float_kernel("Floor", [](auto x) { return std::floor(x); }));
  registry.add(float_kernel("Ceil", [](auto x) { return std::ceil(x); }));
  // In the default rounding mode: halves to even.
  registry.add(float_kernel("Round", [](auto x) { return std::nearbyint(x); }));

  registry.add(float_kernel("Sin", [](auto x) { return std::sin(x); }));
  registry.add(float_kernel("Cos", [](auto x) { return std::cos(x); }));
  registry.add(float_kernel("Tan", [](auto x) { return std::tan(x); }));
  registry.add(float_kernel("Asin", [](auto x) { return std::asin(x); }));
  registry.add(float_kernel("Acos", [](auto x) { return std::acos(x); }));
  registry.add(float_kernel("Atan", [](auto x) { return std::atan(x); }));
  registry.add(float_kernel("Sinh", [](auto x) { return std::sinh(x); }));
  registry.add(float_kernel("Cosh", [](auto x) { return std::cosh(x); }));
  registry.add(float_kernel("Asinh", [](auto x) { return std::asinh(x); }));
  registry.add(float_kernel("Acosh", [](auto x) { return std::acosh(x); }));
  registry.add(float_kernel("Atanh", [](auto x) { return std::atanh(x); }));
}

}  // namespace graft
