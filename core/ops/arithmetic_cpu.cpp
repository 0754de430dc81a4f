#include "core/ops/elementwise_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Integer division by zero has no value in ONNX; it gives 0 here instead of a trap.
template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(T{} - a);
    }
  }
  return static_cast<T>(a / b);
}

Kernel make_add(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request,
                         [](const auto& a, const auto& b) { return a + b; });
}

Kernel make_sub(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request,
                         [](const auto& a, const auto& b) { return a - b; });
}

Kernel make_mul(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request,
                         [](const auto& a, const auto& b) { return a * b; });
}

Kernel make_float_div(KernelRequest& request) {
  return dispatch_binary(FloatTypes{}, request, [](const auto& a, const auto& b) { return a / b; });
}

Kernel make_integer_div(KernelRequest& request) {
  return dispatch_binary(IntegerTypes{}, request, [](const auto& a, const auto& b) {
    using T = typename std::decay_t<decltype(a)>::Scalar;
    return a.binaryExpr(b, [](T x, T y) { return divide(x, y); });
  });
}

}  // namespace

void register_arithmetic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Add", .name = "eigen", .make = make_add});
  registry.add({.op = "Sub", .name = "eigen", .make = make_sub});
  registry.add({.op = "Mul", .name = "eigen", .make = make_mul});
  registry.add({.op = "Div", .name = "eigen", .make = make_float_div});
  registry.add({.op = "Div", .name = "plain", .make = make_integer_div});
}

}  // namespace graft
