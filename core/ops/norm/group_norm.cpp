#include <algorithm>
#include <numeric>

#include "core/ops/builder.h"
#include "core/ops/norm/norm_lowering.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// Input `index` has one element a channel of x (axis 1 of input `x`).
void check_channel_parameter(const InferContext& context, int x, int index) {
  context.require_rank(index, 1, 1);
  const SymShape* const shape = context.shape(x);
  const SymShape* const parameter = context.shape(index);
  if (shape == nullptr || parameter == nullptr) return;
  const Dim& channels = (*shape)[1];
  const Dim& found = (*parameter)[0];
  if (channels.is_known() && found.is_known() && channels.value() != found.value()) {
    context.fail(ErrorKind::shape, "input '", context.input(index).name(), "' has ", found,
                 " elements, wanted one a channel: ", channels);
  }
}

void check_groups(const InferContext& context, int x) {
  const std::int64_t groups = context.attributes().get_int("num_groups", 0);
  if (groups < 1) context.fail(ErrorKind::model, "num_groups is ", groups, ", wanted 1 or more");
  const SymShape* const shape = context.shape(x);
  if (shape != nullptr && (*shape)[1].is_known() && (*shape)[1].value() % groups != 0) {
    context.fail(ErrorKind::shape, "num_groups ", groups, " does not divide ", (*shape)[1],
                 " channels");
  }
}

void infer_instance_norm(InferContext& context) {
  context.require_rank(0, 2, 64);
  context.require_same_dtype({0, 1, 2});
  for (const int parameter : {1, 2}) check_channel_parameter(context, 0, parameter);
  context.copy_type(0);
}

void infer_group_norm(InferContext& context) {
  infer_instance_norm(context);
  check_groups(context, 0);
}

/// dy and x of one shape, scale [C].
void infer_group_norm_grad(InferContext& context) {
  context.require_rank(1, 2, 64);
  context.require_same_dtype({0, 1, 2});
  const SymShape* const dy = context.shape(0);
  const SymShape* const x = context.shape(1);
  if (dy != nullptr && x != nullptr && dy->known() && x->known() && !(*dy == *x)) {
    context.fail(ErrorKind::shape, "dy is ", *dy, ", x is ", *x, ", wanted one shape");
  }
  check_channel_parameter(context, 1, 2);
  check_groups(context, 1);
  context.copy_type(1);
  for (const int output : {1, 2}) context.copy_type(2, output);
}

/// Opset 18 has one scale and one bias a group; each is repeated over the channels of its group.
void upgrade_group_norm(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 21 || node.input(0) == nullptr) return;
  const std::int64_t groups = node.attributes.get_int("num_groups", 0);
  if (groups < 1) return;  // inference refuses it
  const Expr count = constant_ints(builder, {groups});
  const Expr channels = call("Shape", {builder.expr(node.input(0))}, {{"start", 1}, {"end", 2}});
  const Expr grid = call("Concat", {count, channels / count}, {{"axis", 0}});
  for (const int parameter : {1, 2}) {
    if (node.input(parameter) == nullptr) continue;
    const Expr by_group = unsqueeze(builder.expr(node.input(parameter)), {1});
    const Expr spread = call("Expand", {by_group, grid});
    node.set_input(parameter, call("Reshape", {spread, constant_ints(builder, {-1})}).value());
  }
}

std::vector<Expr> group_norm_gradients(const Gradient& g, std::int64_t groups) {
  return call_multi(
      "GroupNormGrad", kInternalDomain, {g.dy(), g.x(0), g.x(1)}, 3,
      {{"num_groups", groups}, {"epsilon", g.attributes().get_float("epsilon", 1e-5F)}});
}

std::vector<Expr> group_norm_rule(const Gradient& g) {
  return group_norm_gradients(g, g.attributes().get_int("num_groups", 0));
}

std::vector<Expr> instance_norm_rule(const Gradient& g) {
  return group_norm_gradients(g, std::max<std::int64_t>(1, g.x().shape()[1]));
}

struct GroupNormCase {
  std::string name;
  Shape x;
  int groups;
};

std::vector<GroupNormCase> group_norm_cases() {
  return {{"image", {3, 4, 5, 6}, 2},      {"one_group", {2, 3, 7}, 1},
          {"each_channel", {2, 5, 9}, 5},  {"features", {4, 6}, 3},
          {"volume", {2, 4, 3, 2, 5}, 2},  {"one_pixel", {3, 8, 1, 1}, 2},
          {"large", {5, 12, 23, 29}, 4},   {"long_runs", {2, 2, 61, 67}, 1},
          {"no_samples", {0, 4, 3, 3}, 2}, {"no_pixels", {2, 4, 0}, 2}};
}

std::vector<SampleInput> group_norm_inputs(const Shape& x) {
  return {{x}, {{x[1]}}, {{x[1]}}};
}

std::vector<Sample> group_norm_samples() {
  std::vector<Sample> samples;
  for (const GroupNormCase& c : group_norm_cases()) {
    samples.push_back({c.name, group_norm_inputs(c.x), {{"num_groups", c.groups}}});
  }
  samples.push_back(
      {"epsilon", group_norm_inputs({2, 4, 3}), {{"num_groups", 2}, {"epsilon", 0.1F}}});
  samples.push_back({"stash_type",
                     group_norm_inputs({2, 4, 3}),
                     {{"num_groups", 2}, {"stash_type", static_cast<int>(DType::f64)}}});
  return samples;
}

std::vector<Sample> instance_norm_samples() {
  std::vector<Sample> samples;
  for (const GroupNormCase& c : group_norm_cases())
    samples.push_back({c.name, group_norm_inputs(c.x)});
  samples.push_back({"epsilon", group_norm_inputs({2, 4, 3}), {{"epsilon", 0.1F}}});
  return samples;
}

std::vector<Sample> group_norm_grad_samples() {
  std::vector<Sample> samples;
  for (const GroupNormCase& c : group_norm_cases()) {
    samples.push_back({c.name, {{c.x}, {c.x}, {{c.x[1]}}}, {{"num_groups", c.groups}}, 3});
  }
  return samples;
}

}  // namespace

/// Group normalization (Wu and He 2018) and instance normalization (Ulyanov, Vedaldi and Lempitsky
/// 2016), which is the case of one channel a group: over the channels of a group and all spatial
/// axes of one sample. The gradient op computes the moments again, as LayerNormGrad does.
void register_group_norm(OpRegistry& registry) {
  registry.add({.name = "GroupNormalization",
                .since = {{18, "scale and bias for each group"}, {21, "for each channel"}},
                .inputs = {{"X"}, {"scale"}, {"bias"}},
                .outputs = {{"Y"}},
                .attributes = {{"epsilon", AttributeType::number},
                               {"num_groups", AttributeType::integer, true},
                               {"stash_type", AttributeType::integer}},
                .infer = infer_group_norm,
                .upgrade = upgrade_group_norm,
                .aliases = {{0, 0, AliasKind::in_place}},
                .weights = {1, 2},
                .backward = group_norm_rule,
                .samples = group_norm_samples});
  registry.add({.name = "InstanceNormalization",
                .since = {{1}, {6}, {22}},
                .inputs = {{"input"}, {"scale"}, {"B"}},
                .outputs = {{"output"}},
                .attributes = {{"epsilon", AttributeType::number}},
                .infer = infer_instance_norm,
                .aliases = {{0, 0, AliasKind::in_place}},
                .weights = {1, 2},
                .backward = instance_norm_rule,
                .samples = instance_norm_samples});
  registry.add(
      {.name = "GroupNormGrad",
       .domain = kInternalDomain,
       .inputs = {{"dy"}, {"x"}, {"scale"}},
       .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
       .attributes = {{"num_groups", AttributeType::integer}, {"epsilon", AttributeType::number}},
       .infer = infer_group_norm_grad,
       .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
       .lower = lower_group_norm_grad,
       .backward = NotDifferentiable{"second derivatives of group normalization are not offered"},
       .samples = group_norm_grad_samples});
}

}  // namespace graft
