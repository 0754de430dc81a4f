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
      if (b == -1) return static_cast<T>(-wrapping(a));
    }
  }
  return static_cast<T>(a / b);
}

Kernel make_add(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) + wrapping(b));
  });
}

Kernel make_sub(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) - wrapping(b));
  });
}

Kernel make_mul(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) * wrapping(b));
  });
}

Kernel make_div(KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request, []<class T>(T a, T b) { return divide(a, b); });
}

}  // namespace

void register_arithmetic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Add", .name = "plain", .make = make_add});
  registry.add({.op = "Sub", .name = "plain", .make = make_sub});
  registry.add({.op = "Mul", .name = "plain", .make = make_mul});
  registry.add({.op = "Div", .name = "plain", .make = make_div});
}

}  // namespace graft
