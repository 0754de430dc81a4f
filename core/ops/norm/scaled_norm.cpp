#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/f32_twin.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_lp_norm(InferContext& context) {
  const std::int64_t p = context.attributes().get_int("p", 2);
  if (p != 1 && p != 2) context.fail(ErrorKind::model, "p is ", p, ", wanted 1 or 2");
  if (const SymShape* const shape = context.shape(0)) {
    normalize_axis(context.attributes().get_int("axis", -1), shape->rank(), context.node().label());
  }
  context.copy_type(0);
}

/// A vector of zeros stays as it is; its gradient is 0.
std::vector<Expr> expand_lp_norm(const Node& node, Builder& builder) {
  const Expr x = builder.expr(node.input(0));
  const std::int64_t p = node.attributes.get_int("p", 2);
  const Expr axes = constant_ints(builder, {node.attributes.get_int("axis", -1)});
  const Expr norm = call(p == 1 ? "ReduceL1" : "ReduceL2", {x, axes});
  const Expr one = constant_like(x, 1.0);
  const Expr is_zero = equal(norm, constant_like(x, 0.0));
  // Never a division by 0, whose gradient would be NaN even where it is not chosen.
  const Expr factor = where(is_zero, constant_like(x, 0.0), one / where(is_zero, one, norm));
  return {x * factor};
}

std::vector<std::int64_t> moment_axes(const Attributes& attributes) {
  return attributes.get_ints("axes", {0, 2, 3});
}

void infer_mean_variance(InferContext& context) {
  const std::vector<std::int64_t> axes = moment_axes(context.attributes());
  if (const SymShape* const shape = context.shape(0)) {
    for (const std::int64_t axis : axes) {
      normalize_axis(axis, shape->rank(), context.node().label());
    }
  }
  context.copy_type(0);
}

/// (x - mean) / (sqrt(variance) + 1e-9), the variance that of the population; 0 where it is 0.
std::vector<Expr> expand_mean_variance(const Node& node, Builder& builder) {
  const Expr given = builder.expr(node.input(0));
  const Expr x = widened(given);
  const std::vector<std::int64_t> axes = moment_axes(node.attributes);
  const Expr centered = x - reduce_mean(x, axes, true);
  const Expr variance = reduce_mean(centered * centered, axes, true);
  const Expr is_zero = equal(variance, constant_like(x, 0.0));
  const Expr deviation = sqrt(where(is_zero, constant_like(x, 1.0), variance));
  return {cast(centered / (deviation + 1e-9), given.dtype())};
}

void infer_lrn(InferContext& context) {
  if (!context.attributes().has("size")) {
    context.fail(ErrorKind::model, "attribute size is missing");
  }
  const std::int64_t size = context.attributes().get_int("size", 1);
  if (size < 1) context.fail(ErrorKind::model, "size is ", size, ", wanted 1 or more");
  context.require_rank(0, 2, 64);
  context.copy_type(0);
}

/// x / (bias + alpha / size * (sum of squares of the `size` channels around))^beta: the mean of
/// squares is an AveragePool along the channels that counts the padding.
std::vector<Expr> expand_lrn(const Node& node, Builder& builder) {
  const Expr given = builder.expr(node.input(0));
  const Expr x = widened(given);
  const Shape shape = x.shape();
  if (shape.size() == 0) return {call("Identity", {given})};
  const std::int64_t wanted = node.attributes.get_int("size", 1);
  // A window that reaches over all channels from each of them cannot see more.
  const std::int64_t size = std::min(wanted, 2 * std::min(shape[1], kMostPerAxis) + 1);
  const Expr squares = reshape(x * x, {shape[0], 1, shape[1], shape.size(2, shape.rank())});
  const std::vector<std::int64_t> kernel{size, 1};
  const std::vector<std::int64_t> pads{(size - 1) / 2, 0, size / 2, 0};
  const Expr means = call("AveragePool", {squares},
                          {{"kernel_shape", kernel}, {"pads", pads}, {"count_include_pad", 1}});
  const double share = static_cast<double>(size) / static_cast<double>(wanted);
  const double alpha = static_cast<double>(node.attributes.get_float("alpha", 1e-4F)) * share;
  const auto beta = static_cast<double>(node.attributes.get_float("beta", 0.75F));
  const auto bias = static_cast<double>(node.attributes.get_float("bias", 1.0F));
  return {cast(x * reshape(pow(means * alpha + bias, -beta), shape), given.dtype())};
}

std::vector<Sample> lp_norm_samples() {
  return {
      {"default", {{{2, 3, 4}}}},
      {"first", {{{3, 4}}}, {{"axis", 0}}},
      {"one", {{{3, 4}, 0.5, 2.0}}, {{"axis", 1}, {"p", 1}}},
      {"negative_one", {{{3, 4}, -2.0, -0.5}}, {{"axis", 1}, {"p", 1}}},
      {"empty", {{{0, 3}}}},
      {"one_element", {{{4, 1}, 0.5, 1.0}}, {{"axis", 0}}},
  };
}

std::vector<Sample> mean_variance_samples() {
  const auto axes = [](std::vector<std::int64_t> list) {
    return Attributes{{"axes", std::move(list)}};
  };
  return {
      {"default", {{{2, 3, 4, 5}}}},        {"last", {{{3, 7}}}, axes({-1})},
      {"two", {{{3, 4, 5}}}, axes({0, 2})}, {"large", {{{4, 3, 31, 33}}}},
      {"empty", {{{0, 3, 2, 2}}}},          {"one_sample", {{{1, 3, 1, 4}}}},
  };
}

std::vector<Sample> lrn_samples() {
  const auto size = [](int number) { return Attributes{{"size", number}}; };
  return {
      {"three", {{{2, 5, 3, 4}}}, size(3)},
      {"even", {{{2, 5, 3, 4}}}, size(4)},
      {"one", {{{2, 5, 3}}}, size(1)},
      {"wider_than_channels", {{{2, 3, 4}}}, size(100)},
      {"two_axes", {{{3, 6}}}, size(3)},
      {"strong", {{{2, 7, 3, 2}}}, {{"size", 5}, {"alpha", 2.0F}, {"beta", 0.5F}, {"bias", 2.0F}}},
      {"empty", {{{0, 3, 2}}}, size(3)},
      {"one_channel", {{{1, 1, 3}}}, size(3)},
  };
}

}  // namespace

/// Normalizations that are short to say in other ops: LpNormalization, MeanVarianceNormalization,
/// and LRN (Krizhevsky, Sutskever and Hinton 2012, section 3.3).
void register_scaled_norm(OpRegistry& registry) {
  registry.add({.name = "LpNormalization",
                .since = {{1}, {22, "bfloat16"}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"axis", AttributeType::integer}, {"p", AttributeType::integer}},
                .infer = infer_lp_norm,
                .weights = {0},
                .backward = Decomposition{expand_lp_norm},
                .samples = lp_norm_samples});
  registry.add({.name = "MeanVarianceNormalization",
                .since = {{9}, {13, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"axes", AttributeType::integers}},
                .infer = infer_mean_variance,
                .backward = Decomposition{expand_mean_variance},
                .samples = mean_variance_samples});
  registry.add({.name = "LRN",
                .since = {{1}, {13, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"alpha", AttributeType::number},
                               {"beta", AttributeType::number},
                               {"bias", AttributeType::number},
                               {"size", AttributeType::integer, true}},
                .infer = infer_lrn,
                .backward = Decomposition{expand_lrn},
                .samples = lrn_samples});
}

}  // namespace graft
