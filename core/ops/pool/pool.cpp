#include <algorithm>
#include <numeric>

#include "core/ops/kernels/window.h"
#include "core/ops/pool/pool_infer.h"
#include "core/ops/pool/pool_lowering.h"
#include "core/ops/pool/pool_rows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// Throws Error{shape} unless each pad is smaller than the window: else a window may hold padding
/// alone.
void check_pads(const Node& node, const WindowAttributes& window) {
  if (window.auto_pad() != WindowAttributes::AutoPad::none) return;
  for (int i = 0; i < window.rank(); ++i) {
    const WindowAxis axis = window.bare_axis(i);
    if (axis.pad_begin >= axis.extent() || axis.pad_end >= axis.extent()) {
      fail(ErrorKind::shape, node.label(), ": pads ", axis.pad_begin, " and ", axis.pad_end,
           " along spatial axis ", i, " must be smaller than the window of ", axis.extent());
    }
  }
}

SymShape pooled_shape(const Node& node, const SymShape& x) {
  const WindowAttributes window(node, x.rank() - 2);
  check_pads(node, window);
  SymShape y = x;
  for (int i = 0; i < window.rank(); ++i) y[i + 2] = window.output_dim(i, x[i + 2]);
  return y;
}

}  // namespace

void infer_with_indices(InferContext& context, DType indices) {
  context.require_rank(0, 3, 64);
  const std::int64_t order = context.attributes().get_int("storage_order", 0);
  if (order != 0 && order != 1) {
    context.fail(ErrorKind::model, "storage_order is ", order, ", wanted 0 or 1");
  }
  std::optional<SymShape> y;
  if (context.shape(0) != nullptr) y = pooled_shape(context.node(), *context.shape(0));
  context.set_output(0, context.dtype(0), y);
  context.set_output(1, indices, y);
}

void infer_pool(InferContext& context) {
  infer_with_indices(context, DType::i64);
}

void infer_global_pool(InferContext& context) {
  context.require_rank(0, 2, 64);
  if (context.shape(0) == nullptr) return context.set_output(0, context.dtype(0));
  SymShape y = *context.shape(0);
  for (int axis = 2; axis < y.rank(); ++axis) {
    if (y[axis].is_known() && y[axis].value() == 0) {
      context.fail(ErrorKind::shape, "input ", y, " has no element to pool");
    }
  }
  for (int axis = 2; axis < y.rank(); ++axis) y[axis] = 1;
  context.set_output(0, context.dtype(0), y);
}

void check_pool_gradient(const InferContext& context, const SymShape& x, int dy_index) {
  if (x.rank() < 3) context.fail(ErrorKind::shape, "shape ", x, " has no spatial axis");
  const SymShape y = pooled_shape(context.node(), x);
  const SymShape* const dy = context.shape(dy_index);
  if (dy == nullptr) return;
  const auto wanted = y.known();
  const auto found = dy->known();
  if (wanted && found && !(*wanted == *found)) {
    context.fail(ErrorKind::shape, "gradient is ", *found, ", wanted ", *wanted);
  }
}

namespace {

void infer_max_pool_grad(InferContext& context) {
  context.require_same_dtype({0, 1});
  context.require_rank(0, 3, 64);
  if (context.shape(0) != nullptr) check_pool_gradient(context, *context.shape(0), 1);
  context.copy_type(0);
}

void infer_average_pool_grad(InferContext& context) {
  const Shape x(context.attributes().get_ints("shape"));
  check_pool_gradient(context, x, 0);
  context.set_output(0, context.dtype(0), SymShape(x));
}

std::vector<Expr> max_pool_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  attributes.erase("storage_order");
  return {call_internal("MaxPoolGrad", {g.x(), g.dy()}, attributes)};
}

std::vector<Expr> average_pool_rule(const Gradient& g) {
  return {call_internal("AveragePoolGrad", {g.dy()}, with_shape(g.attributes(), g.x().shape()))};
}

std::vector<Expr> average_pool_grad_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  attributes.erase("shape");
  return {call("AveragePool", {g.dy()}, attributes)};
}

std::vector<Expr> global_average_pool_rule(const Gradient& g) {
  const Shape shape = g.x().shape();
  const auto count = static_cast<double>(shape.size(2, shape.rank()));
  return {expand(g.dy() / count, shape)};
}

/// As max pooling by one window: the gradient goes to the first maximum of each plane.
std::vector<Expr> global_max_pool_rule(const Gradient& g) {
  const Shape shape = g.x().shape();
  if (shape.rank() == 2) return {g.dy()};
  const std::int64_t count = shape.size(2, shape.rank());
  const Expr dx = call_internal(
      "MaxPoolGrad",
      {reshape(g.x(), {shape[0], shape[1], count}), reshape(g.dy(), {shape[0], shape[1], 1})},
      {{"kernel_shape", Ints{count}}});
  return {reshape(dx, shape)};
}

std::vector<Sample> max_pool_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    samples.push_back({c.name, {distinct_image(c.x)}, c.attributes});
    samples.push_back({c.name + "_indices", {distinct_image(c.x)}, c.attributes, 2});
  }
  samples.push_back({"column_major",
                     {distinct_image({2, 2, 4, 6})},
                     {{"kernel_shape", Ints{2, 3}}, {"storage_order", 1}},
                     2});
  return samples;
}

std::vector<Sample> max_pool_grad_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    samples.push_back({c.name, {distinct_image(c.x), {.shape = c.y}}, c.attributes});
  }
  return samples;
}

std::vector<Sample> average_pool_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    samples.push_back({c.name, {{.shape = c.x}}, c.attributes});
    Attributes including = c.attributes;
    including.set({"count_include_pad", 1});
    samples.push_back({c.name + "_include_pad", {{.shape = c.x}}, including});
  }
  return samples;
}

std::vector<Sample> average_pool_grad_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    Attributes attributes = with_shape(c.attributes, c.x);
    samples.push_back({c.name, {{.shape = c.y}}, attributes});
    attributes.set({"count_include_pad", 1});
    samples.push_back({c.name + "_include_pad", {{.shape = c.y}}, attributes});
  }
  return samples;
}

std::vector<Sample> global_pool_samples() {
  return {{"image", {distinct_image({2, 3, 5, 7})}},
          {"line", {distinct_image({2, 3, 33})}},
          {"volume", {distinct_image({1, 2, 3, 4, 5})}},
          {"no_spatial_axis", {distinct_image({3, 4})}},
          {"one_pixel", {distinct_image({2, 3, 1, 1})}},
          {"empty_batch", {distinct_image({0, 3, 2, 2})}},
          {"many", {distinct_image({8, 40, 9, 11})}}};
}

void register_average_and_global_pools(OpRegistry& registry) {
  registry.add({.name = "AveragePool",
                .since = {{1},
                          {7, "count_include_pad"},
                          {10, "ceil_mode"},
                          {11},
                          {19, "dilations"},
                          {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = pool_attributes({{"count_include_pad", AttributeType::integer}}),
                .infer = infer_pool,
                .layout = {LayoutRule::Kind::together, {0}, {0}},
                .backward = average_pool_rule,
                .samples = average_pool_samples});
  registry.add({.name = "AveragePoolGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}},
                .outputs = {{"dx"}},
                .attributes = pool_attributes({{"count_include_pad", AttributeType::integer},
                                               {"shape", AttributeType::integers, true}}),
                .infer = infer_average_pool_grad,
                .layout = {LayoutRule::Kind::together, {0}, {0}},
                .lower = lower_average_pool_grad,
                .backward = average_pool_grad_rule,
                .samples = average_pool_grad_samples});
  registry.add({.name = "GlobalAveragePool",
                .since = {{1}, {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_global_pool,
                .layout = {LayoutRule::Kind::together, {0}, {}},
                .backward = global_average_pool_rule,
                .samples = global_pool_samples});
  registry.add({.name = "GlobalMaxPool",
                .since = {{1}, {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_global_pool,
                .backward = global_max_pool_rule,
                .samples = global_pool_samples});
}

}  // namespace

/// Ties: the gradient of a maximum goes to its first position in row-major order, as in PyTorch.
void register_pool(OpRegistry& registry) {
  registry.add({.name = "MaxPool",
                .since = {{1},
                          {8, "indices, storage_order"},
                          {10, "ceil_mode, dilations"},
                          {11},
                          {12, "i8, u8"},
                          {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}, {"Indices", Arity::optional}},
                .attributes = pool_attributes({{"storage_order", AttributeType::integer}}),
                .infer = infer_pool,
                .layout = {LayoutRule::Kind::together, {0}, {0}},
                .mixed_precision = kFollows,
                .backward = max_pool_rule,
                .samples = max_pool_samples});
  registry.add({.name = "MaxPoolGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"dy"}},
                .outputs = {{"dx"}},
                .attributes = pool_attributes({}),
                .infer = infer_max_pool_grad,
                .lower = lower_max_pool_grad,
                .backward = NotDifferentiable{"second derivatives of max pooling are not offered"},
                .samples = max_pool_grad_samples});
  register_average_and_global_pools(registry);
}

}  // namespace graft
