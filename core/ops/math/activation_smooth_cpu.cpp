#include <cmath>
#include <numbers>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/vector_math.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

namespace vm = vector_math;

template <class Function>
KernelDef function_of_x(std::string_view op, Function) {
  return {.op = op, .name = "plain", .make_run = [](const KernelRequest& request) {
            return dispatch_unary(FloatTypes{}, request, Function{});
          }};
}

/// dx = function(saved, dy)
template <class Function>
KernelDef fused_gradient(std::string_view op, Function) {
  return {.op = op,
          .domain = kInternalDomain,
          .name = "plain",
          .make_run = [](const KernelRequest& request) {
            return dispatch_binary(FloatTypes{}, request, Function{});
          }};
}

bool is_tanh_gelu(const KernelRequest& request) {
  return request.attributes().get_string("approximate", "none") == "tanh";
}

/// sqrt(2/pi) (x + 0.044715 x^3), the argument of the tanh in Gelu's approximation.
template <class T>
T gelu_argument(T x) {
  constexpr T kScale = static_cast<T>(0.79788456080286535588);
  return kScale * x * (T{1} + static_cast<T>(0.044715) * x * x);
}

template <class T>
T gelu_argument_slope(T x) {
  constexpr T kScale = static_cast<T>(0.79788456080286535588);
  return kScale * (T{1} + static_cast<T>(3 * 0.044715) * x * x);
}

/// The normal distribution function.
template <class T>
T normal_cdf(T x) {
  constexpr T kHalf = static_cast<T>(0.5);
  return kHalf + kHalf * vm::erf(x * static_cast<T>(1 / std::numbers::sqrt2));
}

RunFunction make_gelu(const KernelRequest& request) {
  if (is_tanh_gelu(request)) {
    return dispatch_unary(FloatTypes{}, request, []<class T>(T x) {
      return static_cast<T>(0.5) * x * (T{1} + vm::tanh(gelu_argument(x)));
    });
  }
  return dispatch_unary(FloatTypes{}, request, [](auto x) { return x * normal_cdf(x); });
}

RunFunction make_gelu_grad(const KernelRequest& request) {
  if (is_tanh_gelu(request)) {
    return dispatch_binary(FloatTypes{}, request, []<class T>(T x, T dy) {
      constexpr T kHalf = static_cast<T>(0.5);
      const T t = vm::tanh(gelu_argument(x));
      return dy * kHalf * (T{1} + t + x * (T{1} - t * t) * gelu_argument_slope(x));
    });
  }
  // Phi(x) + x phi(x)
  return dispatch_binary(FloatTypes{}, request, []<class T>(T x, T dy) {
    constexpr T kInvSqrt2Pi = static_cast<T>(0.39894228040143267794);
    return dy * (normal_cdf(x) + x * kInvSqrt2Pi * vm::exp(static_cast<T>(-0.5) * x * x));
  });
}

RunFunction make_swish(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 1.0F);
  return dispatch_unary(FloatTypes{}, request, [alpha]<class T>(T x) {
    return x * vm::sigmoid(static_cast<T>(alpha) * x);
  });
}

RunFunction make_swish_grad(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 1.0F);
  return dispatch_binary(FloatTypes{}, request, [alpha]<class T>(T x, T dy) {
    const T z = static_cast<T>(alpha) * x;
    const T s = vm::sigmoid(z);
    return dy * s * (T{1} + z * (T{1} - s));
  });
}

/// tanh(log(1 + w)) = n / (n + 2) with w = e^x, n = w^2 + 2w: no cancellation for x -> -infinity.
/// For x > 20 it is 1, and its slope 0, in every type.
template <class T>
struct MishGate {
  explicit MishGate(T x) : is_one(x > T{20}), w(vm::exp(is_one ? T{20} : x)), n(w * (w + T{2})) {}
  bool is_one;
  T w;
  T n;

  T value() const { return n / (n + T{2}); }
  T slope() const { return is_one ? T{0} : T{4} * w * (T{1} + w) / ((n + T{2}) * (n + T{2})); }
};

}  // namespace

void register_activation_smooth_cpu(KernelRegistry& registry) {
  registry.add(function_of_x("Sigmoid", [](auto x) { return vm::sigmoid(x); }));
  registry.add(
      fused_gradient("SigmoidGrad", []<class T>(T y, T dy) { return dy * y * (T{1} - y); }));
  registry.add(function_of_x("Tanh", [](auto x) { return vm::tanh(x); }));
  registry.add(fused_gradient("TanhGrad", []<class T>(T y, T dy) { return dy * (T{1} - y * y); }));

  registry.add({.op = "Gelu", .name = "plain", .make_run = make_gelu});
  registry.add(
      {.op = "GeluGrad", .domain = kInternalDomain, .name = "plain", .make_run = make_gelu_grad});
  registry.add({.op = "Swish", .name = "plain", .make_run = make_swish});
  registry.add(
      {.op = "SwishGrad", .domain = kInternalDomain, .name = "plain", .make_run = make_swish_grad});
  registry.add(function_of_x("Mish", [](auto x) { return x * MishGate(x).value(); }));
  registry.add(fused_gradient("MishGrad", []<class T>(T x, T dy) {
    const MishGate<T> gate(x);
    return dy * (gate.value() + x * gate.slope());
  }));

  registry.add(function_of_x("Softplus", [](auto x) { return vm::softplus(x); }));
  registry.add(function_of_x("Softsign", [](auto x) { return x / (1 + std::abs(x)); }));
}

}  // namespace graft
