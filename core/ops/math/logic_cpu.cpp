#include <cmath>
#include <limits>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

RunFunction make_equal(const KernelRequest& request) {
  return dispatch_compare(Signless<NumericTypes>{}, request, [](auto a, auto b) { return a == b; });
}

RunFunction make_less(const KernelRequest& request) {
  return dispatch_compare(NumericTypes{}, request, [](auto a, auto b) { return a < b; });
}

RunFunction make_less_or_equal(const KernelRequest& request) {
  return dispatch_compare(NumericTypes{}, request, [](auto a, auto b) { return a <= b; });
}

/// Of the operands in the other order.
template <RunFunction (*make)(const KernelRequest&)>
RunFunction make_turned(const KernelRequest& request) {
  const RunFunction run = make(request);
  if (!run) return {};
  return [run](std::int64_t count, std::span<const RunOperand> x, void* y) {
    run(count, std::array{x[1], x[0]}, y);
  };
}

/// Logic on bytes: a file may hold any byte in a bool tensor, and all but 0 are true.
template <class Function>
KernelDef logical(std::string_view op, Function) {
  return {.op = op, .name = "plain", .make_run = [](const KernelRequest& request) {
            if (request.dtype() != DType::boolean) return RunFunction();
            using Byte = std::uint8_t;
            return run_function<Byte, Byte, Byte>(
                [](Byte a, Byte b) { return static_cast<Byte>(Function{}(a != 0, b != 0)); });
          }};
}

RunFunction make_not(const KernelRequest& request) {
  if (request.dtype() != DType::boolean) return {};
  using Byte = std::uint8_t;
  return run_function<Byte, Byte>([](Byte x) { return static_cast<Byte>(x == 0); });
}

RunFunction make_is_nan(const KernelRequest& request) {
  return dispatch_unary_to<bool>(FloatTypes{}, request, [](auto x) { return x != x; });
}

RunFunction make_is_inf(const KernelRequest& request) {
  const bool negative = request.attributes().get_int("detect_negative", 1) != 0;
  const bool positive = request.attributes().get_int("detect_positive", 1) != 0;
  return dispatch_unary_to<bool>(FloatTypes{}, request, [negative, positive]<class T>(T x) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return (positive & (x == kInfinity)) | (negative & (x == -kInfinity));
  });
}

RunFunction make_where(const KernelRequest& request) {
  if (request.dtype(0) != DType::boolean) return {};
  RunFunction run;
  visit_width(request.dtype(1), [&]<class T>() {
    run = run_function<T, std::uint8_t, T, T>(
        [](std::uint8_t condition, T x, T y) { return condition != 0 ? x : y; });
  });
  return run;
}

}  // namespace

void register_logic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Equal", .name = "plain", .make_run = make_equal});
  registry.add(logical("Equal", [](bool a, bool b) { return a == b; }));
  registry.add({.op = "Less", .name = "plain", .make_run = make_less});
  registry.add({.op = "LessOrEqual", .name = "plain", .make_run = make_less_or_equal});
  registry.add({.op = "Greater", .name = "plain", .make_run = make_turned<make_less>});
  registry.add(
      {.op = "GreaterOrEqual", .name = "plain", .make_run = make_turned<make_less_or_equal>});
  registry.add(logical("And", [](bool a, bool b) { return a && b; }));
  registry.add(logical("Or", [](bool a, bool b) { return a || b; }));
  registry.add(logical("Xor", [](bool a, bool b) { return a != b; }));
  registry.add({.op = "Not", .name = "plain", .make_run = make_not});
  registry.add({.op = "IsNaN", .name = "plain", .make_run = make_is_nan});
  registry.add({.op = "IsInf", .name = "plain", .make_run = make_is_inf});
  registry.add({.op = "Where", .name = "plain", .make_run = make_where});
}

}  // namespace graft
