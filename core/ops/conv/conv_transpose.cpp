#include "core/base/at.h"
#include "core/ops/conv/conv_cost.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// The sizes of dims 2 and on; empty when one is not known.
Ints spatial_sizes(const SymShape& shape) {
  Ints sizes;
  for (int i = 2; i < shape.rank(); ++i) {
    if (!shape[i].is_known()) return {};
    sizes.push_back(shape[i].value());
  }
  return sizes;
}

/// Channels of the output: those of one group of the weight [C, M / group, K...] times groups.
Dim output_channels(const InferContext& context, const SymShape& x, const SymShape& w) {
  const Dim& channels = x[1].is_known() ? x[1] : w[0];
  if (x[1].is_known() && w[0].is_known() && x[1].value() != w[0].value()) {
    context.fail(ErrorKind::shape, "input has ", x[1], " channels, weight wants ", w[0]);
  }
  const std::int64_t groups =
      group_count(context.node(), channels.is_known() ? channels.value() : 0);
  if (w[1].is_known()) return checked_multiply(w[1].value(), groups);
  return groups == 1 ? w[1] : Dim();
}

void infer_conv_transpose(InferContext& context) {
  context.require_same_dtype({0, 1});
  const SymShape* const x = context.shape(0);
  const SymShape* const w = context.shape(1);
  if (x == nullptr || w == nullptr) return context.set_output(0, context.dtype(0));
  context.require_rank(0, 3, 64);
  context.require_rank(1, x->rank(), x->rank());
  SymShape y = *x;
  y[1] = output_channels(context, *x, *w);
  check_conv_bias(context, 2, y[1]);
  const Ints sizes = spatial_sizes(*x);
  const Ints kernel = conv_kernel(context, *w);
  const bool is_known = !sizes.empty() && !kernel.empty();
  for (int i = 2; i < y.rank(); ++i) y[i] = Dim();
  if (is_known) {
    const auto axes = transposed_axes(context.node(), sizes, kernel);
    for (int i = 2; i < y.rank(); ++i) y[i] = at(axes, i - 2).input;
  }
  context.set_output(0, context.dtype(0), y);
}

/// The op is the input gradient of a convolution from its output to its input.
std::vector<Expr> conv_transpose_rule(const Gradient& g) {
  const Expr x = g.x(0);
  const Expr w = g.x(1);
  const Shape from = x.shape();
  const Shape kernel = w.shape();
  Attributes attributes = window_to_attributes(transposed_axes(
      g.node(), {from.begin() + 2, from.end()}, {kernel.begin() + 2, kernel.end()}));
  attributes.set({"group", g.attributes().get_int("group", 1)});
  std::vector<Expr> result{conv_forward(g.dy(), w, attributes, from),
                           conv_weight_grad(g.dy(), x, attributes, kernel, false)[0]};
  if (g.input_count() > 2 && g.x(2)) result.push_back(sum_but_channels(g.dy()));
  return result;
}

struct ConvTransposeCase {
  std::string name;
  Shape x;
  Shape w;
  Attributes attributes{};
  std::int64_t groups = 1;
};

std::vector<ConvTransposeCase> conv_transpose_cases() {
  const Ints two{2, 2};
  const auto same = [&](const char* mode) {
    return Attributes{{"auto_pad", mode}, {"strides", two}};
  };
  return {
      {"plain", {2, 3, 4, 5}, {3, 4, 3, 2}},
      {"strided",
       {1, 3, 4, 5},
       {3, 2, 3, 3},
       {{"strides", two}, {"pads", Ints{1, 0, 1, 2}}, {"kernel_shape", Ints{3, 3}}}},
      {"output_padding",
       {1, 2, 3, 4},
       {2, 3, 3, 3},
       {{"strides", Ints{3, 2}}, {"output_padding", Ints{2, 1}}}},
      {"output_shape",
       {1, 2, 3, 3},
       {2, 2, 3, 3},
       {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 6}}}},
      {"output_shape_beyond_windows",
       {1, 2, 3, 3},
       {2, 2, 2, 2},
       {{"strides", two}, {"output_shape", Ints{9, 7}}}},
      {"same_upper", {1, 2, 3, 4}, {2, 2, 3, 3}, same("SAME_UPPER")},
      {"same_lower", {1, 2, 3, 4}, {2, 2, 3, 3}, same("SAME_LOWER")},
      {"valid", {1, 2, 3, 4}, {2, 2, 3, 3}, same("VALID")},
      {"dilated", {1, 2, 4, 3}, {2, 2, 2, 3}, {{"dilations", Ints{3, 2}}}},
      {"grouped", {2, 4, 3, 3}, {4, 3, 2, 2}, {{"group", 2}, {"strides", two}}, 2},
      {"depthwise", {1, 3, 5, 4}, {3, 1, 3, 3}, {{"group", 3}, {"pads", Ints{1, 1, 1, 1}}}, 3},
      {"one_axis", {2, 3, 5}, {3, 2, 4}, {{"strides", Ints{2}}}},
      {"three_axes", {1, 2, 3, 2, 3}, {2, 2, 2, 3, 2}, {{"strides", Ints{2, 1, 1}}}},
      {"empty_batch", {0, 2, 3, 3}, {2, 2, 2, 2}},
      {"many", {4, 20, 9, 8}, {20, 16, 4, 4}, {{"strides", two}, {"pads", Ints{1, 1, 1, 1}}}},
  };
}

std::vector<Sample> conv_transpose_samples() {
  std::vector<Sample> result;
  for (const ConvTransposeCase& c : conv_transpose_cases()) {
    result.push_back({c.name, {{.shape = c.x}, {.shape = c.w}}, c.attributes});
    result.push_back({c.name + "_bias",
                      {{.shape = c.x}, {.shape = c.w}, {.shape = {c.w[1] * c.groups}}},
                      c.attributes});
  }
  return result;
}

}  // namespace

/// Kernels stand beside those of ConvInputGrad.
void register_conv_transpose(OpRegistry& registry) {
  registry.add({.name = "ConvTranspose",
                .since = {{1}, {11, "defaults of attributes"}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"W"}, {"B", Arity::optional}},
                .outputs = {{"Y"}},
                .attributes = {{"auto_pad", AttributeType::text},
                               {"dilations", AttributeType::integers},
                               {"group", AttributeType::integer},
                               {"kernel_shape", AttributeType::integers},
                               {"output_padding", AttributeType::integers},
                               {"output_shape", AttributeType::integers},
                               {"pads", AttributeType::integers},
                               {"strides", AttributeType::integers}},
                .infer = infer_conv_transpose,
                .layout = {LayoutRule::Kind::each, {0}, {0}},
                .weights = {1, 2},
                .mixed_precision = kProduct,
                .multiply_adds = spreading_multiply_adds,
                .backward = conv_transpose_rule,
                .samples = conv_transpose_samples});
}

}  // namespace graft
