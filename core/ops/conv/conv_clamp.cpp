#include "core/ops/conv/conv_clamp.h"
#include "core/ops/conv/conv_cost.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_conv_clamp(InferContext& context) {
  context.require_same_dtype({0, 1});
  set_conv_output(context, 1, context.dtype(0));
  const SymShape* const w = context.shape(1);
  if (context.shape(0) != nullptr && w != nullptr) check_conv_bias(context, 2, (*w)[0]);
}

/// What is at a bound does not change. Those of the convolution, of the rest.
std::vector<Expr> conv_clamp_rule(const Gradient& g) {
  const Expr y = g.y();
  const auto bound = [&](std::string_view name, float none) {
    return constant_like(y, g.attributes().get_float(name, none));
  };
  const Expr zero = constant_like(y, 0.0);
  const Expr above = where(greater(y, bound("lower", -ConvClamp::kUnbounded)), g.dy(), zero);
  const Expr dy = where(less(y, bound("upper", ConvClamp::kUnbounded)), above, zero);
  Attributes attributes = g.attributes();
  attributes.erase("lower");
  attributes.erase("upper");
  std::vector<Expr> result{conv_input_grad(dy, g.x(1), attributes, g.x(0).shape()),
                           conv_weight_grad(g.x(0), dy, attributes, g.x(1).shape(), false)[0]};
  if (g.input_count() > 2) result.push_back(sum_but_channels(dy));
  return result;
}

using Ints = std::vector<std::int64_t>;

const Attributes kReluClamp{{"lower", 0.0F}};
const Attributes kBothBounds{{"lower", -0.25F}, {"upper", 0.5F}};
const Attributes kUpperBound{{"upper", 0.125F}};

struct ConvClampCase {
  std::string name;
  Shape x;
  Shape w;
  Attributes clamp;
  Attributes conv{};
  std::string no_gradient_check{};
};

std::vector<ConvClampCase> conv_clamp_cases() {
  const Ints around{1, 1, 1, 1};
  constexpr const char* kNear = "some sums lie so near a bound that a difference crosses it";
  return {
      {"relu", {2, 3, 6, 7}, {4, 3, 3, 2}, kReluClamp},
      {"both", {2, 3, 5, 5}, {5, 3, 3, 3}, kBothBounds, {{"pads", around}}},
      {"least", {2, 5, 3, 4}, {7, 5, 1, 1}, kUpperBound},
      {"without_bounds", {1, 2, 4, 4}, {3, 2, 2, 2}, {}},
      {"grouped", {2, 4, 5, 5}, {6, 2, 3, 3}, kReluClamp, {{"group", 2}}},
      {"depthwise",
       {2, 5, 6, 6},
       {5, 1, 3, 3},
       kBothBounds,
       {{"group", 5}, {"pads", around}},
       kNear},
      {"dilated", {1, 2, 9, 8}, {2, 2, 3, 2}, kReluClamp, {{"dilations", Ints{2, 3}}}},
      {"same_upper",
       {1, 2, 5, 6},
       {3, 2, 3, 2},
       kReluClamp,
       {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 2}}, {"kernel_shape", Ints{3, 2}}}},
      {"one_axis", {2, 3, 11}, {4, 3, 4}, kReluClamp, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}}},
      {"three_axes", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, kBothBounds},
      {"no_images", {0, 3, 5, 5}, {4, 3, 3, 3}, kReluClamp},
      {"no_channels", {2, 0, 3, 3}, {2, 0, 2, 2}, kReluClamp},
      {"many", {4, 16, 17, 15}, {24, 16, 3, 3}, kBothBounds, {{"pads", around}}, kNear},
      // Sums in several stretches, of which the last is clamped.
      {"wide", {6, 130, 7, 7}, {48, 130, 3, 3}, kReluClamp, {{"pads", around}}},
      {"wide_vectors", {2, 144, 12, 12}, {48, 144, 3, 3}, kBothBounds, {{"pads", around}}, kNear},
      {"wide_both", {4, 32, 9, 8}, {64, 32, 2, 2}, kBothBounds, {{"pads", around}}},
  };
}

std::vector<Sample> conv_clamp_samples() {
  constexpr double kLongSums = 5e-5;
  std::vector<Sample> all;
  for (const ConvClampCase& c : conv_clamp_cases()) {
    Sample sample{c.name, {{.shape = c.x}, {.shape = c.w}}, c.conv};
    for (const Attribute& bound : c.clamp) sample.attributes.set(bound);
    if (c.name == "wide" || c.name == "wide_vectors") sample.absolute = kLongSums;
    sample.no_gradient_check = c.no_gradient_check;
    all.push_back(sample);
    sample.name += "_bias";
    sample.inputs.push_back({.shape = {c.w[0]}});
    all.push_back(std::move(sample));
  }
  return all;
}

}  // namespace

/// A convolution and what Relu or Clip makes of its result, without a second pass over memory:
/// y = min(max(Conv(X, W, B), lower), upper), in graphs that only answer.
void register_conv_clamp(OpRegistry& registry) {
  registry.add({.name = "ConvClamp",
                .domain = kInternalDomain,
                .inputs = {{"X"}, {"W"}, {"B", Arity::optional}},
                .outputs = {{"Y"}},
                .attributes = {{"auto_pad", AttributeType::text},
                               {"dilations", AttributeType::integers},
                               {"group", AttributeType::integer},
                               {"kernel_shape", AttributeType::integers},
                               {"pads", AttributeType::integers},
                               {"strides", AttributeType::integers},
                               {"lower", AttributeType::number},
                               {"upper", AttributeType::number}},
                .infer = infer_conv_clamp,
                .layout = {LayoutRule::Kind::each, {0}, {0}},
                .multiply_adds = gathering_multiply_adds,
                .backward = conv_clamp_rule,
                .samples = conv_clamp_samples});
}

}  // namespace graft
