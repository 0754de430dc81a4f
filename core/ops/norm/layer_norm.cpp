#include <algorithm>
#include <numeric>

#include "core/ops/builder.h"
#include "core/ops/kernels/norm_row.h"
#include "core/ops/norm/norm_lowering.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

std::optional<int> first_axis(const InferContext& context, int input) {
  const SymShape* const shape = context.shape(input);
  const std::int64_t axis = context.attributes().get_int("axis", -1);
  if (shape == nullptr) return std::nullopt;
  return normalize_axis(axis, shape->rank(), context.node().label());
}

/// The type that the standard computes in; here, that of Mean and InvStdDev.
DType stash_type(const InferContext& context) {
  const std::int64_t number = context.attributes().get_int("stash_type", 1);
  const auto dtype = static_cast<DType>(number);
  if (number < 0 || number > 100 || !is_float(dtype)) {
    context.fail(ErrorKind::type, "stash_type ", number, " is no float type (f32 is 1)");
  }
  return dtype;
}

/// Input `index` broadcasts to x without making it larger.
void check_broadcast_parameter(const InferContext& context, int index) {
  const SymShape* const x = context.shape(0);
  const SymShape* const parameter = context.shape(index);
  if (x == nullptr || parameter == nullptr) return;
  const SymShape both = broadcast(context, *x, *parameter);
  bool fits = both.rank() == x->rank();
  for (int axis = 0; fits && axis < x->rank(); ++axis) {
    fits = !(*x)[axis].is_known() || !both[axis].is_known() ||
           (*x)[axis].value() == both[axis].value();
  }
  if (!fits) {
    context.fail(ErrorKind::shape, "input '", context.input(index).name(), "' is ", *parameter,
                 ", wanted a shape that broadcasts to ", *x);
  }
}

void infer_rms_norm(InferContext& context) {
  stash_type(context);
  first_axis(context, 0);
  context.require_same_dtype({0, 1});
  check_broadcast_parameter(context, 1);
  context.copy_type(0);
}

void infer_layer_norm(InferContext& context) {
  const DType stash = stash_type(context);
  context.require_same_dtype({0, 1, 2});
  check_broadcast_parameter(context, 1);
  check_broadcast_parameter(context, 2);
  context.copy_type(0);
  std::optional<SymShape> moments;
  if (const auto axis = first_axis(context, 0)) {
    moments = *context.shape(0);
    for (int i = *axis; i < moments->rank(); ++i) (*moments)[i] = Dim(1);
  }
  for (const int output : {1, 2}) {
    if (context.node().output(output) != nullptr) context.set_output(output, stash, moments);
  }
}

/// dy and x of one shape; scale with one element for each that is normalized together.
void infer_norm_grad(InferContext& context) {
  context.require_same_dtype({0, 1, 2});
  const SymShape* const dy = context.shape(0);
  const SymShape* const x = context.shape(1);
  const SymShape* const scale = context.shape(2);
  if (dy != nullptr && x != nullptr && dy->known() && x->known() && !(*dy == *x)) {
    context.fail(ErrorKind::shape, "dy is ", *dy, ", x is ", *x, ", wanted one shape");
  }
  const auto axis = first_axis(context, 1);
  if (axis && scale != nullptr && scale->known() && x->known()) {
    const Dim wanted = product(*x, *axis, x->rank());
    if (product(*scale, 0, scale->rank()).value() != wanted.value()) {
      context.fail(ErrorKind::shape, "scale is ", *scale, ", wanted ", wanted, " elements");
    }
  }
  context.copy_type(1);
  for (const int output : {1, 2}) context.copy_type(2, output);
}

std::vector<std::int64_t> axes_from(int first, int rank) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

int layer_norm_axis(const Gradient& g) {
  return normalize_axis(g.attributes().get_int("axis", -1), g.x().rank(), g.node().label());
}

Attributes grad_attributes(const Gradient& g) {
  return {{"axis", layer_norm_axis(g)}, {"epsilon", g.attributes().get_float("epsilon", 1e-5F)}};
}

/// {dx, dscale, dbias} (the last only of LayerNormGrad) for a scale of any shape.
std::vector<Expr> layer_norm_gradients(const Gradient& g, std::string_view grad_op, int outputs) {
  const int axis = layer_norm_axis(g);
  const Shape x = g.x().shape();
  const bool has_bias = g.node().input(2) != nullptr;
  if (is_row_parameter(x, axis, g.x(1).shape()) &&
      (!has_bias || is_row_parameter(x, axis, g.x(2).shape()))) {
    std::vector<Expr> result =
        call_multi(grad_op, kInternalDomain, {g.dy(), g.x(), g.x(1)}, outputs, grad_attributes(g));
    if (has_bias) result[2] = reshape(result[2], g.x(2).shape());
    return result;
  }
  // y = z * scale + bias, z normalized without either.
  const std::vector<std::int64_t> row(x.dims().begin() + axis, x.dims().end());
  const Expr ones = expand(constant_like(g.x(), 1.0), Shape(row));
  const Expr z = call(g.node().op_type(), {g.x(), ones}, grad_attributes(g));
  const Expr dx = call_multi(grad_op, kInternalDomain, {g.dy() * g.x(1), g.x(), ones}, outputs,
                             grad_attributes(g))[0];
  return {dx, g.dy() * z, g.dy()};
}

std::vector<Expr> rms_norm_rule(const Gradient& g) {
  std::vector<Expr> result = layer_norm_gradients(g, "RmsNormGrad", 2);
  result.resize(2);
  return result;
}

/// With s = InvStdDev and n elements a row: d mean / dx = 1 / n, ds / dx = -s^3 (x - mean) / n.
std::vector<Expr> layer_norm_rule(const Gradient& g) {
  std::vector<Expr> result;
  Expr dx;
  if (g.has_dy(0)) {
    result = layer_norm_gradients(g, "LayerNormGrad", 3);
    dx = result[0];
  }
  const std::vector<std::int64_t> axes = axes_from(layer_norm_axis(g), g.x().rank());
  const double share =
      1.0 / static_cast<double>(g.x().shape().size(layer_norm_axis(g), g.x().rank()));
  const auto add = [&](const Expr& more) { dx = dx ? dx + more : expand(more, g.x().shape()); };
  if (g.has_dy(1)) add(cast(g.dy(1), g.x().dtype()) * share);
  if (g.has_dy(2)) {
    const Expr centered = g.x() - reduce_mean(g.x(), axes, true);
    const Expr variance = reduce_mean(centered * centered, axes, true);
    const auto epsilon = static_cast<double>(g.attributes().get_float("epsilon", 1e-5F));
    const Expr slope = pow(variance + epsilon, -1.5) * cast(g.dy(2), g.x().dtype()) * -share;
    add(centered * slope);
  }
  result.resize(3);
  result[0] = dx;
  if (g.node().input(2) == nullptr) result[2] = Expr();
  return result;
}

struct LayerNormCase {
  std::string name;
  Shape x;
  int axis;
  Shape parameter;
};

std::vector<LayerNormCase> plain_cases() {
  return {{"last", {3, 4, 7}, -1, {7}},      {"two_axes", {3, 4, 7}, 1, {4, 7}},
          {"whole", {3, 5}, 0, {3, 5}},      {"one_element", {4, 1}, -1, {1}},
          {"vector", {9}, 0, {9}},           {"leading_ones", {2, 3, 8}, -1, {1, 1, 8}},
          {"odd_row", {5, 613}, -1, {613}},  {"many_rows", {421, 33}, -1, {33}},
          {"tokens", {3, 65, 96}, -1, {96}}, {"no_rows", {0, 3}, -1, {3}},
          {"no_columns", {3, 0}, -1, {0}}};
}

/// Parameters that broadcast within a row or vary from row to row.
std::vector<LayerNormCase> broadcast_cases() {
  return {{"scalar_scale", {3, 4, 7}, -1, {}},
          {"one_scale", {3, 4, 7}, 1, {1}},
          {"column_scale", {3, 4, 7}, 1, {4, 1}},
          {"scale_by_row", {3, 4, 7}, -1, {4, 7}}};
}

std::vector<LayerNormCase> all_layer_norm_cases() {
  std::vector<LayerNormCase> cases = plain_cases();
  std::ranges::copy(broadcast_cases(), std::back_inserter(cases));
  return cases;
}

std::vector<Sample> rms_norm_samples() {
  std::vector<Sample> samples;
  for (const LayerNormCase& c : all_layer_norm_cases()) {
    samples.push_back({c.name, {{c.x}, {c.parameter}}, {{"axis", c.axis}}});
  }
  samples.push_back({"epsilon", {{{3, 5}}, {{5}}}, {{"epsilon", 0.1F}}});
  samples.push_back(
      {"stash_type", {{{3, 5}}, {{5}}}, {{"stash_type", static_cast<int>(DType::f64)}}});
  return samples;
}

/// stash_type f64, so that differences can check the moments.
std::vector<Sample> layer_norm_samples() {
  constexpr int kDouble = static_cast<int>(DType::f64);
  std::vector<Sample> samples;
  for (const LayerNormCase& c : all_layer_norm_cases()) {
    const Attributes axis{{"axis", c.axis}};
    samples.push_back({c.name, {{c.x}, {c.parameter}, {c.parameter}}, axis});
    samples.push_back({c.name + "_without_bias", {{c.x}, {c.parameter}}, axis});
    samples.push_back({c.name + "_moments",
                       {{c.x}, {c.parameter}, {c.parameter}},
                       {{"axis", c.axis}, {"stash_type", kDouble}},
                       3});
  }
  samples.push_back({"epsilon", {{{3, 5}}, {{5}}}, {{"epsilon", 0.1F}}});
  samples.push_back({"scalar_bias", {{{3, 5}}, {{5}}, {Shape()}}});
  samples.push_back({"far_from_zero", {{{3, 50}, 1000.0, 1002.0}, {{50}}}, {}, 1, "", 1e-5, 1e-4});
  return samples;
}

std::vector<Sample> row_norm_grad_samples(int outputs) {
  std::vector<Sample> samples;
  for (const LayerNormCase& c : plain_cases()) {
    samples.push_back(
        {c.name, {{c.x}, {c.x}, {c.parameter}}, {{"axis", c.axis}, {"epsilon", 1e-3F}}, outputs});
  }
  return samples;
}
std::vector<Sample> layer_norm_grad_samples() {
  return row_norm_grad_samples(3);
}
std::vector<Sample> rms_norm_grad_samples() {
  return row_norm_grad_samples(2);
}

OpDef grad_op(std::string_view name, std::vector<Param> outputs, Lowering lower, Samples samples) {
  return {
      .name = name,
      .domain = kInternalDomain,
      .inputs = {{"dy"}, {"x"}, {"scale"}},
      .outputs = std::move(outputs),
      .attributes = {{"axis", AttributeType::integer}, {"epsilon", AttributeType::number}},
      .infer = infer_norm_grad,
      .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
      .lower = lower,
      .backward = NotDifferentiable{"second derivatives of layer normalization are not offered"},
      .samples = samples};
}

}  // namespace

/// Layer normalization (Ba, Kiros and Hinton 2016) and RMS normalization (Zhang and Sennrich 2019)
/// over the axes from `axis` on. The gradient ops compute the moments again: they read x anyway,
/// and a row stays in the cache. All is computed in the type of x, sums in f64, whatever stash_type
/// says; it is the type of Mean and InvStdDev.
void register_layer_norm(OpRegistry& registry) {
  const std::vector<AttributeDef> attributes{{"axis", AttributeType::integer},
                                             {"epsilon", AttributeType::number},
                                             {"stash_type", AttributeType::integer}};
  registry.add({.name = "LayerNormalization",
                .since = {{17}},
                .inputs = {{"X"}, {"Scale"}, {"B", Arity::optional}},
                .outputs = {{"Y"}, {"Mean", Arity::optional}, {"InvStdDev", Arity::optional}},
                .attributes = attributes,
                .infer = infer_layer_norm,
                .aliases = {{0, 0, AliasKind::in_place}},
                .weights = {1, 2},
                .backward = layer_norm_rule,
                .samples = layer_norm_samples});
  registry.add({.name = "RMSNormalization",
                .since = {{23}},
                .inputs = {{"X"}, {"scale"}},
                .outputs = {{"Y"}},
                .attributes = attributes,
                .infer = infer_rms_norm,
                .aliases = {{0, 0, AliasKind::in_place}},
                .weights = {1},
                .backward = rms_norm_rule,
                .samples = rms_norm_samples});
  registry.add(grad_op("LayerNormGrad", {{"dx"}, {"dscale"}, {"dbias"}}, lower_layer_norm_grad,
                       layer_norm_grad_samples));
  registry.add(
      grad_op("RmsNormGrad", {{"dx"}, {"dscale"}}, lower_rms_norm_grad, rms_norm_grad_samples));
}

}  // namespace graft
