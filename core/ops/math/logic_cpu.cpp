#include <cmath>
#include <limits>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// A comparison of numbers, from a stateless lambda.
template <class Function>
KernelDef comparison(std::string_view op, Function) {
  return {.op = op, .name = "plain", .make_run = [](const KernelRequest& request) {
            return dispatch_compare(NumericTypes{}, request, Function{});
          }};
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
  registry.add(comparison("Equal", [](auto a, auto b) { return a == b; }));
  registry.add(logical("Equal", [](bool a, bool b) { return a == b; }));
  registry.add(comparison("Less", [](auto a, auto b) { return a < b; }));
  registry.add(comparison("LessOrEqual", [](auto a, auto b) { return a <= b; }));
  registry.add(comparison("Greater", [](auto a, auto b) { return a > b; }));
  registry.add(comparison("GreaterOrEqual", [](auto a, auto b) { return a >= b; }));
  registry.add(logical("And", [](bool a, bool b) { return a && b; }));
  registry.add(logical("Or", [](bool a, bool b) { return a || b; }));
  registry.add(logical("Xor", [](bool a, bool b) { return a != b; }));
  registry.add({.op = "Not", .name = "plain", .make_run = make_not});
  registry.add({.op = "IsNaN", .name = "plain", .make_run = make_is_nan});
  registry.add({.op = "IsInf", .name = "plain", .make_run = make_is_inf});
  registry.add({.op = "Where", .name = "plain", .make_run = make_where});
}

}  // namespace graft
