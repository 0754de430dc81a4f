#include "core/ops/builder.h"
#include "core/ops/f32_twin.h"
#include "core/ops/infer.h"
#include "core/ops/reduce/softmax_lowering.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_row_dot(InferContext& context) {
  context.require_same_dtype({0, 1});
  context.require_rank(0, 1, INT32_MAX);
  const SymShape* const a = context.shape(0);
  const SymShape* const b = context.shape(1);
  if (a != nullptr && b != nullptr && a->known() && b->known() && a->known() != b->known()) {
    context.fail(ErrorKind::shape, "a dot product of rows of ", *a, " and ", *b);
  }
  const SymShape* const shape = a != nullptr ? a : b;
  const DType dtype = is_short_float(context.dtype(0)) ? DType::f32 : context.dtype(0);
  if (shape == nullptr) return context.set_output(0, dtype);
  std::vector<Dim> dims = shape->dims();
  dims.pop_back();
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

std::vector<Expr> row_dot_rule(const Gradient& g) {
  const Expr dy = unsqueeze(g.dy(), {-1});
  const DType dtype = g.x(0).dtype();
  return {cast(dy * widened(g.x(1)), dtype), cast(dy * widened(g.x(0)), dtype)};
}

std::vector<Sample> row_dot_samples() {
  std::vector<Sample> samples;
  const auto add = [&](const char* name, const Shape& shape) {
    samples.push_back({name, {{shape}, {shape}}});
  };
  add("vector", {5});
  add("rows", {3, 4, 16});
  add("odd", {7, 37});
  add("one_column", {4, 1});
  add("many", {300, 33});
  add("no_rows", {0, 4});
  add("no_columns", {3, 0});
  return samples;
}

}  // namespace

/// y[...] = sum of a[..., i] * b[..., i] over i, for a and b of one shape: Mul and ReduceSum,
/// without the products in memory. The sums of f16 and bf16 are f32.
void register_row_dot(OpRegistry& registry) {
  registry.add({.name = "RowDot",
                .domain = kInternalDomain,
                .inputs = {{"a"}, {"b"}},
                .outputs = {{"y"}},
                .infer = infer_row_dot,
                .lower = lower_row_dot,
                .backward = row_dot_rule,
                .samples = row_dot_samples});
}

}  // namespace graft
