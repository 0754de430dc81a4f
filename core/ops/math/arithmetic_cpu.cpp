#include "core/ops/kernels/elementwise.h"
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

RunFunction make_add(const KernelRequest& request) {
  return dispatch_binary(Signless<NumericTypes>{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) + wrapping(b));
  });
}

RunFunction make_sub(const KernelRequest& request) {
  return dispatch_binary(Signless<NumericTypes>{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) - wrapping(b));
  });
}

RunFunction make_mul(const KernelRequest& request) {
  return dispatch_binary(Signless<NumericTypes>{}, request, []<class T>(T a, T b) {
    return static_cast<T>(wrapping(a) * wrapping(b));
  });
}

RunFunction make_div(const KernelRequest& request) {
  return dispatch_binary(NumericTypes{}, request, []<class T>(T a, T b) { return divide(a, b); });
}

}  // namespace

void register_arithmetic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Add", .name = "plain", .make_run = make_add});
  registry.add({.op = "Sub", .name = "plain", .make_run = make_sub});
  registry.add({.op = "Mul", .name = "plain", .make_run = make_mul});
  registry.add({.op = "Div", .name = "plain", .make_run = make_div});
}

}  // namespace graft
