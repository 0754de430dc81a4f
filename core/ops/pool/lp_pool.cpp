#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/f32_twin.h"
#include "core/ops/kernels/window.h"
#include "core/ops/pool/pool_infer.h"
#include "core/ops/registry.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

std::int64_t exponent_of(const Node& node) {
  const std::int64_t p = node.attributes.get_int("p", 2);
  if (p < 1) fail(ErrorKind::shape, node.label(), ": p is ", p, ", wanted at least 1");
  return p;
}

void infer_lp_pool(InferContext& context) {
  exponent_of(context.node());
  infer_pool(context);
}

void infer_global_lp_pool(InferContext& context) {
  exponent_of(context.node());
  infer_global_pool(context);
}

/// |x|^p.
Expr power(const Expr& x, std::int64_t p) {
  if (p == 1) return call("Abs", {x});
  if (p == 2) return x * x;
  return pow(call("Abs", {x}), static_cast<double>(p));
}

/// sum^(1/p); where the sum is 0 the gradient is 0 and not infinite.
Expr root(const Expr& sum, std::int64_t p) {
  if (p == 1) return sum;
  const Expr zero = constant_like(sum, 0.0);
  const Expr has_root = greater(sum, zero);
  const Expr safe = where(has_root, sum, constant_like(sum, 1.0));
  const Expr result = p == 2 ? sqrt(safe) : pow(safe, 1.0 / static_cast<double>(p));
  return where(has_root, result, zero);
}

/// How many input elements the windows along one spatial axis meet, to be multiplied with
/// [N,C,...].
Expr window_counts(const Node& node, const Expr& like, const WindowAxis& axis, int at) {
  require_small_table(node, axis.output);
  std::vector<double> counts;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    counts.push_back(static_cast<double>(axis.taps_of_output(o).count()));
  }
  if (counts.empty()) return constant_like(like, 1.0);
  const bool all_equal = std::ranges::count(counts, counts.front()) == std::ssize(counts);
  if (all_equal) return constant_like(like, counts.front());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(like.rank()), 1);
  dims[static_cast<std::size_t>(at)] = axis.output;
  const Tensor tensor = Tensor::from(Shape(dims), counts).cast(like.dtype());
  return like.builder().expr(like.builder().constant(tensor));
}

/// A sum is an average times the number of elements in it.
std::vector<Expr> expand_lp_pool(const Node& node, Builder& builder) {
  const std::int64_t p = exponent_of(node);
  const Expr x = builder.expr(node.input(0));
  const Shape shape = x.shape();
  Attributes attributes = node.attributes;
  attributes.erase("p");
  Expr sum = call("AveragePool", {power(widened(x), p)}, attributes);
  const WindowAttributes window(node, shape.rank() - 2);
  for (int i = 0; i < window.rank(); ++i) {
    sum = sum * window_counts(node, sum, window.axis(i, shape[i + 2]), i + 2);
  }
  return {cast(root(sum, p), x.dtype())};
}

std::vector<Expr> expand_global_lp_pool(const Node& node, Builder& builder) {
  const std::int64_t p = exponent_of(node);
  const Expr x = builder.expr(node.input(0));
  std::vector<std::int64_t> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  if (axes.empty()) return {call("Abs", {x})};
  return {cast(root(reduce_sum(power(widened(x), p), axes, true), p), x.dtype())};
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> lp_pool_samples() {
  const SampleInput x{.shape = {2, 3, 6, 7}, .low = 0.2, .high = 2.0};
  const Attribute three{"kernel_shape", Ints{3, 2}};
  const Attribute strides{"strides", Ints{2, 1}};
  return {
      {"two", {x}, {three, strides}},
      {"one", {x}, {three, strides, {"p", 1}}},
      {"three", {x}, {three, strides, {"p", 3}}},
      {"padded", {x}, {three, {"pads", Ints{1, 1, 0, 0}}}},
      {"ceil", {x}, {three, {"strides", Ints{2, 2}}, {"ceil_mode", 1}}},
      {"dilated", {x}, {three, {"dilations", Ints{2, 3}}}},
      {"same_upper", {x}, {three, strides, {"auto_pad", "SAME_UPPER"}}},
      {"line", {{.shape = {2, 3, 9}, .low = -2.0, .high = -0.2}}, {{"kernel_shape", Ints{4}}}},
      {"empty_batch", {{.shape = {0, 3, 6, 7}}}, {three}},
      {"no_rows", {{.shape = {2, 3, 0, 7}}}, {three, {"auto_pad", "SAME_UPPER"}}},
      {"one_row", {{.shape = {1, 1, 1, 5}, .low = 0.2}}, {{"kernel_shape", Ints{1, 2}}}},
      {"same_lower", {x}, {three, strides, {"auto_pad", "SAME_LOWER"}}},
      {"valid", {x}, {three, strides, {"auto_pad", "VALID"}}},
  };
}

std::vector<Sample> global_lp_pool_samples() {
  const SampleInput x{.shape = {2, 3, 4, 5}, .low = 0.2, .high = 2.0};
  return {
      {"two", {x}},
      {"one", {x}, {{"p", 1}}},
      {"three", {x}, {{"p", 3}}},
      {"line", {{.shape = {2, 3, 7}, .low = -2.0, .high = -0.2}}},
      {"no_spatial_axis", {{.shape = {2, 3}, .low = 0.2}}},
      {"empty_batch", {{.shape = {0, 3, 4, 5}}}},
      {"one_row", {{.shape = {1, 1, 1, 3}, .low = 0.2}}},
  };
}

}  // namespace

/// LpPool and GlobalLpPool: the p-norm of each window, made of AveragePool and ReduceSum.
void register_lp_pool(OpRegistry& registry) {
  registry.add({.name = "LpPool",
                .since = {{2}, {11}, {18, "ceil_mode, dilations"}, {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"auto_pad", AttributeType::text},
                               {"ceil_mode", AttributeType::integer},
                               {"dilations", AttributeType::integers},
                               {"kernel_shape", AttributeType::integers, true},
                               {"p", AttributeType::integer},
                               {"pads", AttributeType::integers},
                               {"strides", AttributeType::integers}},
                .infer = infer_lp_pool,
                .backward = Decomposition{expand_lp_pool},
                .samples = lp_pool_samples});
  registry.add({.name = "GlobalLpPool",
                .since = {{2}, {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"p", AttributeType::integer}},
                .infer = infer_global_lp_pool,
                .backward = Decomposition{expand_global_lp_pool},
                .samples = global_lp_pool_samples});
}

}  // namespace graft
