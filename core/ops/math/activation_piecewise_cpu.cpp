#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/vector_math.h"
#include "core/ops/math/activation.h"

namespace graft {
namespace {

using ReluTypes = TypeList<float, double, std::int64_t, std::int32_t, std::int16_t, std::int8_t>;
using PReluTypes =
    TypeList<float, double, std::int64_t, std::int32_t, std::uint64_t, std::uint32_t>;

/// Numbers in bf16 below 0, by their bits: NaN is none.
bool is_negative(std::uint16_t bits) {
  constexpr std::uint16_t kMinusZero = 0x8000;
  constexpr std::uint16_t kMinusInfinity = 0xff80;
  return bits > kMinusZero && bits <= kMinusInfinity;
}

/// NaN stays NaN.
RunFunction make_relu(const KernelRequest& request) {
  if (is_kernel_dtype<BFloat16>(request.dtype())) {
    using Bits = std::uint16_t;
    return run_function<Bits, Bits>([](Bits x) { return is_negative(x) ? Bits{0} : x; });
  }
  return dispatch_unary(ReluTypes{}, request, []<class T>(T x) { return x < T{} ? T{} : x; });
}

RunFunction make_relu_grad(const KernelRequest& request) {
  if (is_kernel_dtype<BFloat16>(request.dtype())) {
    using Bits = std::uint16_t;
    return run_function<Bits, Bits, Bits>([](Bits y, Bits dy) {
      const bool is_zero = (y & 0x7fffU) == 0;
      return is_zero || is_negative(y) ? Bits{0} : dy;
    });
  }
  return dispatch_binary(FloatTypes{}, request,
                         []<class T>(T y, T dy) { return y <= T{} ? T{} : dy; });
}

RunFunction make_leaky_relu(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 0.01F);
  return dispatch_unary(FloatTypes{}, request,
                        [alpha]<class T>(T x) { return x > T{} ? x : static_cast<T>(alpha) * x; });
}

RunFunction make_leaky_relu_grad(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 0.01F);
  return dispatch_binary(FloatTypes{}, request, [alpha]<class T>(T x, T dy) {
    return x > T{} ? dy : static_cast<T>(alpha) * dy;
  });
}

RunFunction make_prelu(const KernelRequest& request) {
  return dispatch_binary(PReluTypes{}, request, []<class T>(T x, T slope) {
    return x < T{} ? static_cast<T>(wrapping(slope) * wrapping(x)) : x;
  });
}

RunFunction make_thresholded_relu(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 1.0F);
  return dispatch_unary(FloatTypes{}, request, [alpha]<class T>(T x) {
    return x > static_cast<T>(alpha) ? x : x == x ? T{} : x;
  });
}

/// x p for x > 0, else s (e^(r x) - 1).
RunFunction exponential_kernel(const KernelRequest& request, double p, double s, double r) {
  return dispatch_unary(FloatTypes{}, request, [p, s, r]<class T>(T x) {
    const T negative = static_cast<T>(s) * vector_math::expm1(static_cast<T>(r) * x);
    return x > T{} ? static_cast<T>(p) * x : negative;
  });
}

RunFunction make_elu(const KernelRequest& request) {
  return exponential_kernel(request, 1.0, request.attributes().get_float("alpha", 1.0F), 1.0);
}

RunFunction make_selu(const KernelRequest& request) {
  const double alpha = request.attributes().get_float("alpha", kSeluAlpha);
  const double gamma = request.attributes().get_float("gamma", kSeluGamma);
  return exponential_kernel(request, gamma, gamma * alpha, 1.0);
}

RunFunction make_celu(const KernelRequest& request) {
  const double alpha = request.attributes().get_float("alpha", 1.0F);
  return exponential_kernel(request, 1.0, alpha, 1.0 / alpha);
}

/// x between 0 and 1; NaN stays NaN.
template <class T>
T unit_clamp(T x) {
  const T above = x < T{0} ? T{0} : x;
  return above > T{1} ? T{1} : above;
}

RunFunction make_hard_sigmoid(const KernelRequest& request) {
  const float alpha = request.attributes().get_float("alpha", 0.2F);
  const float beta = request.attributes().get_float("beta", 0.5F);
  return dispatch_unary(FloatTypes{}, request, [alpha, beta]<class T>(T x) {
    return unit_clamp(static_cast<T>(alpha) * x + static_cast<T>(beta));
  });
}

RunFunction make_hard_swish(const KernelRequest& request) {
  return dispatch_unary(FloatTypes{}, request, []<class T>(T x) {
    return x * unit_clamp(x * static_cast<T>(1.0 / 6.0) + static_cast<T>(0.5));
  });
}

RunFunction make_hard_swish_grad(const KernelRequest& request) {
  return dispatch_binary(FloatTypes{}, request, []<class T>(T x, T dy) {
    const T inner = dy * (x * static_cast<T>(1.0 / 3.0) + static_cast<T>(0.5));
    return x <= T{-3} ? T{0} : x >= T{3} ? dy : inner;
  });
}

}  // namespace

void register_activation_piecewise_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, RunFactory make) {
    registry.add({.op = op, .name = "plain", .make_run = make});
  };
  const auto add_internal = [&](std::string_view op, RunFactory make) {
    registry.add({.op = op, .domain = kInternalDomain, .name = "plain", .make_run = make});
  };
  add("Relu", make_relu);
  add("LeakyRelu", make_leaky_relu);
  add("PRelu", make_prelu);
  add("ThresholdedRelu", make_thresholded_relu);
  add("Elu", make_elu);
  add("Selu", make_selu);
  add("Celu", make_celu);
  add("HardSigmoid", make_hard_sigmoid);
  add("HardSwish", make_hard_swish);
  add_internal("ReluGrad", make_relu_grad);
  add_internal("LeakyReluGrad", make_leaky_relu_grad);
  add_internal("HardSwishGrad", make_hard_swish_grad);
}

}  // namespace graft
