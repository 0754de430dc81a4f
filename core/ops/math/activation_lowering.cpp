#include "core/ops/math/activation_lowering.h"

#include <numbers>

#include "core/ops/lowering.h"

namespace graft {
namespace {

Expr zero_like(const Expr& x) {
  return constant_like(x, 0.0);
}

/// dy where `condition`, else 0.
Expr passed_where(const Expr& condition, const Expr& dy) {
  return where(condition, dy, zero_like(dy));
}

Expr slope_of_gelu(const Expr& x) {
  const Expr cdf = call("Erf", {x * (1.0 / std::numbers::sqrt2)}) * 0.5 + 0.5;
  constexpr double kInvSqrt2Pi = 0.39894228040143267794;
  return cdf + x * exp(x * x * -0.5) * kInvSqrt2Pi;
}

Expr slope_of_tanh_gelu(const Expr& x) {
  constexpr double kScale = 0.79788456080286535588;  // sqrt(2 / pi)
  constexpr double kCubic = 0.044715;
  const Expr square = x * x;
  const Expr t = tanh(x * (square * kCubic + 1.0) * kScale);
  const Expr slope = (square * (3 * kCubic) + 1.0) * kScale;
  return (t + 1.0 + x * (1.0 - t * t) * slope) * 0.5;
}

}  // namespace

std::vector<Expr> lower_relu_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {passed_where(greater(n.x(0), zero_like(n.x(0))), n.x(1))};
}

std::vector<Expr> lower_leaky_relu_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr dy = n.x(1);
  return {where(greater(n.x(0), zero_like(n.x(0))), dy, dy * n.number("alpha", 0.01F))};
}

std::vector<Expr> lower_hard_swish_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(0);
  const Expr dy = n.x(1);
  const Expr inner = dy * (x * (1.0 / 3.0) + 0.5);
  const Expr below_three = where(less(x, constant_like(x, 3.0)), inner, dy);
  return {passed_where(greater(x, constant_like(x, -3.0)), below_three)};
}

std::vector<Expr> lower_clip_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  Expr dx = n.x(1);
  if (n.has_x(2)) dx = passed_where(logical_not(less(n.x(0), n.x(2))), dx);
  if (n.has_x(3)) dx = passed_where(logical_not(greater(n.x(0), n.x(3))), dx);
  return {n.has_x(2) || n.has_x(3) ? dx : call("Identity", {dx})};
}

std::vector<Expr> lower_sigmoid_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {n.x(1) * n.x(0) * (1.0 - n.x(0))};
}

std::vector<Expr> lower_tanh_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {n.x(1) * (1.0 - n.x(0) * n.x(0))};
}

std::vector<Expr> lower_gelu_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const bool is_tanh = n.attributes().get_string("approximate", "none") == "tanh";
  return {n.x(1) * (is_tanh ? slope_of_tanh_gelu(n.x(0)) : slope_of_gelu(n.x(0)))};
}

std::vector<Expr> lower_swish_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr z = n.x(0) * n.number("alpha", 1.0F);
  const Expr s = sigmoid(z);
  return {n.x(1) * s * (z * (1.0 - s) + 1.0)};
}

/// With s = softplus(x) and t = tanh(s): t + x (1 - t^2) sigmoid(x).
std::vector<Expr> lower_mish_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(0);
  const Expr t = tanh(call("Softplus", {x}));
  return {n.x(1) * (t + x * (1.0 - t * t) * sigmoid(x))};
}

}  // namespace graft
