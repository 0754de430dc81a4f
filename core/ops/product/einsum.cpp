// An einsum is contracted from left to right, two operands at a time, each pair as one batched
// matrix product; start reading at `expand_einsum`.
#include <algorithm>
#include <map>

#include "core/ops/builder.h"
#include "core/ops/product/einsum.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

std::string equation_of(const Node& node) {
  if (!node.attributes.has("equation")) {
    fail(ErrorKind::model, node.label(), ": attribute equation is missing");
  }
  return node.attributes.get_string("equation", "");
}

/// A label that comes twice in one term names axes of one size.
void check_diagonal(const InferContext& context, const SymShape& shape,
                    const std::vector<Label>& labels, std::size_t axis) {
  const auto first = std::ranges::find(labels, labels[axis]) - labels.begin();
  const Dim& a = shape[static_cast<int>(first)];
  const Dim& b = shape[static_cast<int>(axis)];
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail(ErrorKind::shape, "the diagonal of axes of ", a, " and ", b, " elements");
  }
}

void infer_einsum(InferContext& context) {
  const std::string equation = equation_of(context.node());
  std::vector<int> ranks;
  for (int i = 0; i < context.input_count(); ++i) {
    context.require_same_dtype({0, i});
    const SymShape* const shape = context.shape(i);
    if (shape == nullptr) return context.set_output(0, context.dtype(0));
    ranks.push_back(shape->rank());
  }
  const EinsumTerms terms = parse_einsum(equation, ranks, context.node().label());
  std::map<Label, Dim> dims;
  for (std::size_t i = 0; i < terms.inputs.size(); ++i) {
    const SymShape& shape = *context.shape(static_cast<int>(i));
    for (std::size_t axis = 0; axis < terms.inputs[i].size(); ++axis) {
      const Dim& dim = shape[static_cast<int>(axis)];
      check_diagonal(context, shape, terms.inputs[i], axis);
      const auto [at, is_new] = dims.try_emplace(terms.inputs[i][axis], dim);
      if (is_new) continue;
      at->second = broadcast(context, SymShape{at->second}, SymShape{dim})[0];
    }
  }
  std::vector<Dim> output;
  for (const Label label : terms.output) output.push_back(dims.at(label));
  context.set_output(0, context.dtype(0), SymShape(std::move(output)));
}

bool holds(const std::vector<Label>& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

std::vector<Label> joined(std::vector<Label> a, const std::vector<Label>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An expression and the label of each of its axes, no label twice.
struct EinsumOperand {
  Expr x;
  std::vector<Label> labels;

  int axis_of(Label label) const {
    return static_cast<int>(std::ranges::find(labels, label) - labels.begin());
  }
  std::int64_t dim(Label label) const { return x.shape()[axis_of(label)]; }
};

EinsumOperand in_order(const EinsumOperand& operand, const std::vector<Label>& labels) {
  if (operand.labels == labels) return operand;
  std::vector<std::int64_t> order;
  for (const Label label : labels) order.push_back(operand.axis_of(label));
  return {transpose(operand.x, order), labels};
}

/// Keeps the diagonal of two axes: flattened, its elements lie n + 1 apart.
EinsumOperand diagonal(const EinsumOperand& operand, std::size_t first, std::size_t second) {
  std::vector<std::int64_t> order;
  std::vector<Label> labels;
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    if (i == first || i == second) continue;
    order.push_back(static_cast<std::int64_t>(i));
    labels.push_back(operand.labels[i]);
    dims.push_back(operand.x.shape()[static_cast<int>(i)]);
  }
  order.push_back(static_cast<std::int64_t>(first));
  order.push_back(static_cast<std::int64_t>(second));
  labels.push_back(operand.labels[first]);
  const std::int64_t n = operand.x.shape()[static_cast<int>(first)];
  dims.push_back(checked_multiply(n, n));
  const auto one = [&](std::int64_t value) { return constant_ints(operand.x.builder(), {value}); };
  const Expr flat = reshape(transpose(operand.x, order), Shape(dims));
  return {call("Slice", {flat, one(0), one(n * n), one(-1), one(n + 1)}), labels};
}

/// Labels that come twice name one axis: the diagonal.
EinsumOperand without_repeats(EinsumOperand operand) {
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    const auto begin = operand.labels.begin();
    const auto again = std::find(begin + static_cast<std::ptrdiff_t>(i) + 1, operand.labels.end(),
                                 operand.labels[i]);
    if (again == operand.labels.end()) continue;
    operand = diagonal(operand, i, static_cast<std::size_t>(again - begin));
    i = static_cast<std::size_t>(-1);  // the axes moved: start again
  }
  return operand;
}

/// Sums out the axes that `keep` refuses.
template <class Keep>
EinsumOperand summed(const EinsumOperand& operand, Keep&& keep) {
  std::vector<std::int64_t> axes;
  std::vector<Label> labels;
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    if (keep(operand.labels[i])) {
      labels.push_back(operand.labels[i]);
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (axes.empty()) return operand;
  return {reduce_sum(operand.x, axes, false), labels};
}

/// Axes of size 1 grow to the size that they have in the other operand.
EinsumOperand grown(const EinsumOperand& operand, const EinsumOperand& other) {
  std::vector<std::int64_t> dims;
  for (const Label label : operand.labels) {
    const std::int64_t dim = operand.dim(label);
    dims.push_back(dim == 1 && holds(other.labels, label) ? other.dim(label) : dim);
  }
  return {expand(operand.x, Shape(dims)), operand.labels};
}

std::int64_t size_of(const EinsumOperand& operand, const std::vector<Label>& labels) {
  std::int64_t size = 1;
  for (const Label label : labels) size = checked_multiply(size, operand.dim(label));
  return size;
}

/// a and b multiplied, and summed over the shared labels that `keep` refuses.
template <class Keep>
EinsumOperand contracted(EinsumOperand a, EinsumOperand b, Keep&& keep) {
  a = summed(a, [&](Label label) { return holds(b.labels, label) || keep(label); });
  b = summed(b, [&](Label label) { return holds(a.labels, label) || keep(label); });
  a = grown(a, b);
  b = grown(b, a);
  std::vector<Label> batch;
  std::vector<Label> shared;
  std::vector<Label> rows;
  std::vector<Label> columns;
  for (const Label label : a.labels) {
    if (!holds(b.labels, label)) {
      rows.push_back(label);
    } else {
      (keep(label) ? batch : shared).push_back(label);
    }
  }
  for (const Label label : b.labels) {
    if (!holds(a.labels, label)) columns.push_back(label);
  }
  const std::int64_t n = size_of(a, batch);
  const std::int64_t k = size_of(a, shared);
  const std::int64_t height = size_of(a, rows);
  const std::int64_t width = size_of(b, columns);
  const EinsumOperand left = in_order(a, joined(joined(batch, rows), shared));
  const EinsumOperand right = in_order(b, joined(joined(batch, shared), columns));
  const Expr x = reshape(left.x, {n, height, k});
  const Expr y = reshape(right.x, {n, k, width});
  const Expr product = shared.empty() ? x * y : matmul(x, y);
  std::vector<std::int64_t> dims;
  for (const Label label : joined(batch, rows)) dims.push_back(a.dim(label));
  for (const Label label : columns) dims.push_back(b.dim(label));
  return {reshape(product, Shape(dims)), joined(joined(batch, rows), columns)};
}

std::vector<Expr> expand_einsum(const Node& node, Builder& builder) {
  const DType out = node.input(0)->dtype();
  const bool is_half = out == DType::f16 || out == DType::bf16;
  std::vector<int> ranks;
  for (const Value* input : node.inputs()) ranks.push_back(input->known_shape().rank());
  const EinsumTerms terms = parse_einsum(equation_of(node), ranks, node.label());
  EinsumOperand result;
  for (std::size_t i = 0; i < terms.inputs.size(); ++i) {
    // A label is still wanted when the output or a later input has it.
    const auto keep = [&](Label label) {
      return holds(terms.output, label) ||
             std::any_of(terms.inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         terms.inputs.end(),
                         [&](const std::vector<Label>& later) { return holds(later, label); });
    };
    const Expr x = builder.expr(node.input(static_cast<int>(i)));
    const EinsumOperand next =
        without_repeats({is_half ? cast(x, DType::f32) : x, terms.inputs[i]});
    result = i == 0 ? summed(next, keep) : contracted(result, next, keep);
  }
  result = in_order(result, terms.output);
  const Expr y = cast(reshape(result.x, node.output(0)->known_shape()), out);
  return {y.value() == node.input(0) ? call("Identity", {y}) : y};
}

Sample einsum_sample(std::string name, const char* equation, const std::vector<Shape>& shapes) {
  Sample result{std::move(name), {}, {{"equation", equation}}};
  for (const Shape& shape : shapes) result.inputs.push_back({shape});
  return result;
}

std::vector<Sample> einsum_samples() {
  return {
      einsum_sample("matmul", "ij,jk->ik", {{2, 3}, {3, 4}}),
      einsum_sample("implicit", "ij,jk", {{2, 3}, {3, 4}}),
      einsum_sample("implicit_sorts", "ba", {{2, 3}}),
      einsum_sample("transpose", "ij->ji", {{2, 3}}),
      einsum_sample("nothing_to_do", "ij->ij", {{2, 3}}),
      einsum_sample("sum", "ij->", {{2, 3}}),
      einsum_sample("scalar", "->", {Shape()}),
      einsum_sample("trace", "ii->", {{3, 3}}),
      einsum_sample("diagonal", "...ii->...i", {{2, 3, 3}}),
      einsum_sample("three_equal", "iji,ki->jk", {{3, 2, 3}, {4, 3}}),
      einsum_sample("three_of_one", "iii->i", {{3, 3, 3}}),
      einsum_sample("inner", "i,i", {{5}, {5}}),
      einsum_sample("outer", "i,j->ji", {{3}, {4}}),
      einsum_sample("hadamard", "ij,ij->ij", {{2, 3}, {2, 3}}),
      einsum_sample("attention", "bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}}),
      einsum_sample("batch_last", "bij,bjk->ikb", {{2, 3, 4}, {2, 4, 5}}),
      einsum_sample("sums_alone", "ik,jl->ij", {{2, 3}, {4, 5}}),
      einsum_sample("ellipsis", "...ij,...jk->...ik", {{2, 3, 4}, {4, 5}}),
      einsum_sample("ellipsis_of_one", "...ij,...jk->...ik", {{2, 3, 4}, {1, 4, 5}}),
      einsum_sample("ellipsis_of_one_left", "...ij,...jk->...ik", {{1, 3, 4}, {2, 4, 5}}),
      einsum_sample("ellipsis_of_three", "...i,...i,...i->...i", {{2, 3}, {2, 3}, {1, 3}}),
      einsum_sample("ellipsis_implicit", "i...,i", {{3, 2, 4}, {3}}),
      einsum_sample("three", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}),
      einsum_sample("kept_for_later", "bi,bj,bk->ijk", {{3, 2}, {3, 2}, {3, 2}}),
      einsum_sample("empty", "ij,jk->ik", {{2, 0}, {0, 4}}),
      einsum_sample("spaces_and_capitals", " I j , jK -> I K ", {{2, 3}, {3, 4}}),
  };
}

}  // namespace

/// Einsum in Transpose, Reshape, ReduceSum, Mul and MatMul; f16 and bf16 are computed in f32.
void register_einsum(OpRegistry& registry) {
  registry.add({.name = "Einsum",
                .since = {{12}, {28, "bfloat16"}},
                .inputs = {{"Inputs", Arity::variadic}},
                .outputs = {{"Output"}},
                .attributes = {{"equation", AttributeType::text, true}},
                .infer = infer_einsum,
                .weights = {0, 1},
                .backward = Decomposition{expand_einsum},
                .samples = einsum_samples});
}

}  // namespace graft
