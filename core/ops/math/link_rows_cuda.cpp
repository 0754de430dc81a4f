#include "core/ops/math/link_rows_cuda.h"

#include <algorithm>
#include <array>

#include "core/ops/math/activation.h"

namespace graft {
namespace {

constexpr std::array kLinkRows{
    LinkRow{"Cast", "", LinkOp::copy},
    LinkRow{"Add", "", LinkOp::add},
    LinkRow{"Sub", "", LinkOp::subtract},
    LinkRow{"Mul", "", LinkOp::multiply},
    LinkRow{"Div", "", LinkOp::divide},
    LinkRow{"Max", "", LinkOp::larger},
    LinkRow{"Min", "", LinkOp::smaller},
    LinkRow{"Sum", "", LinkOp::add},
    LinkRow{"Mean", "", LinkOp::add},
    LinkRow{"Neg", "", LinkOp::negate},
    LinkRow{"Abs", "", LinkOp::absolute},
    LinkRow{"Sqrt", "", LinkOp::square_root},
    LinkRow{"Reciprocal", "", LinkOp::reciprocal},
    LinkRow{"Exp", "", LinkOp::exponential},
    LinkRow{"Log", "", LinkOp::logarithm},
    LinkRow{"Erf", "", LinkOp::error_function},
    LinkRow{"Sign", "", LinkOp::sign},
    LinkRow{"Floor", "", LinkOp::floor},
    LinkRow{"Ceil", "", LinkOp::ceiling},
    LinkRow{"Round", "", LinkOp::round},
    LinkRow{"Pow", "", LinkOp::power},
    LinkRow{"Tanh", "", LinkOp::tanh},
    LinkRow{"Sigmoid", "", LinkOp::sigmoid},
    LinkRow{"Softplus", "", LinkOp::softplus},
    LinkRow{"Softsign", "", LinkOp::softsign},
    LinkRow{"Relu", "", LinkOp::relu},
    LinkRow{"LeakyRelu", "", LinkOp::leaky_relu, "alpha", 0.01F},
    LinkRow{"PRelu", "", LinkOp::prelu},
    LinkRow{"ThresholdedRelu", "", LinkOp::thresholded_relu, "alpha", 1.0F},
    LinkRow{"HardSigmoid", "", LinkOp::hard_sigmoid, "alpha", 0.2F, "beta", 0.5F},
    LinkRow{"HardSwish", "", LinkOp::hard_swish},
    LinkRow{"Gelu", "", LinkOp::gelu},
    LinkRow{"Swish", "", LinkOp::swish, "alpha", 1.0F},
    LinkRow{"Mish", "", LinkOp::mish},
    LinkRow{"Elu", "", LinkOp::elu, "alpha", 1.0F},
    LinkRow{"Selu", "", LinkOp::selu, "alpha", kSeluAlpha, "gamma", kSeluGamma},
    LinkRow{"Celu", "", LinkOp::celu, "alpha", 1.0F},
    LinkRow{"Asin", "", LinkOp::arc_sine},
    LinkRow{"Acos", "", LinkOp::arc_cosine},
    LinkRow{"Atan", "", LinkOp::arc_tangent},
    LinkRow{"Sin", "", LinkOp::sine},
    LinkRow{"Cos", "", LinkOp::cosine},
    LinkRow{"Tan", "", LinkOp::tangent},
    LinkRow{"Sinh", "", LinkOp::hyperbolic_sine},
    LinkRow{"Cosh", "", LinkOp::hyperbolic_cosine},
    LinkRow{"Asinh", "", LinkOp::area_sine},
    LinkRow{"Acosh", "", LinkOp::area_cosine},
    LinkRow{"Atanh", "", LinkOp::area_tangent},
    LinkRow{"Clip", "", LinkOp::clip},
    LinkRow{"TanhGrad", kInternalDomain, LinkOp::tanh_gradient},
    LinkRow{"SigmoidGrad", kInternalDomain, LinkOp::sigmoid_gradient},
    LinkRow{"ReluGrad", kInternalDomain, LinkOp::relu_gradient},
    LinkRow{"LeakyReluGrad", kInternalDomain, LinkOp::leaky_relu_gradient, "alpha", 0.01F},
    LinkRow{"GeluGrad", kInternalDomain, LinkOp::gelu_gradient},
    LinkRow{"SwishGrad", kInternalDomain, LinkOp::swish_gradient, "alpha", 1.0F},
    LinkRow{"MishGrad", kInternalDomain, LinkOp::mish_gradient},
    LinkRow{"HardSwishGrad", kInternalDomain, LinkOp::hard_swish_gradient},
    LinkRow{"Equal", "", LinkOp::equal},
    LinkRow{"Less", "", LinkOp::less},
    LinkRow{"LessOrEqual", "", LinkOp::less_or_equal},
    LinkRow{"Greater", "", LinkOp::greater},
    LinkRow{"GreaterOrEqual", "", LinkOp::greater_or_equal},
    LinkRow{"And", "", LinkOp::both},
    LinkRow{"Or", "", LinkOp::either},
    LinkRow{"Xor", "", LinkOp::one_of},
    LinkRow{"Not", "", LinkOp::invert},
    LinkRow{"IsNaN", "", LinkOp::is_nan},
    LinkRow{"Where", "", LinkOp::choose},
};

bool is_variadic(const Node& node) {
  return node.is("Max") || node.is("Min") || node.is("Sum");
}

}  // namespace

std::span<const LinkRow> link_rows() {
  return kLinkRows;
}

bool is_fold(const Node& node) {
  return node.is("Mean") || (is_variadic(node) && node.input_count() > 2);
}

std::optional<ChainLink> link_of(const Node& node) {
  const auto row = std::ranges::find_if(kLinkRows, [&](const LinkRow& one) {
    return one.op == node.op_type() && one.domain == node.domain();
  });
  if (row == kLinkRows.end()) return std::nullopt;
  ChainLink link{.op = row->link};
  if (is_variadic(node) && node.input_count() == 1) link.op = LinkOp::copy;
  const Attributes& a = node.attributes;
  if (!row->p.empty()) link.p = a.get_float(row->p, row->p_default);
  if (!row->q.empty()) link.q = a.get_float(row->q, row->q_default);
  const bool is_tanh = a.get_string("approximate", "none") == "tanh";
  if (is_tanh && link.op == LinkOp::gelu) link.op = LinkOp::gelu_tanh;
  if (is_tanh && link.op == LinkOp::gelu_gradient) link.op = LinkOp::gelu_tanh_gradient;
  return link;
}

}  // namespace graft
