#include "core/ops/cost.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// A shape as a list of matrices: its last two dims (1-d operands padded to a row or a column) and
/// the batch dims before them.
struct MatMulOperand {
  SymShape batch;
  Dim rows;
  Dim columns;
};

MatMulOperand split_operand(const SymShape& shape, bool transposed, bool pads_column = false) {
  const int rank = shape.rank();
  if (rank == 1)
    return pads_column ? MatMulOperand{{}, shape[0], 1} : MatMulOperand{{}, 1, shape[0]};
  SymShape batch(std::vector<Dim>(shape.begin(), shape.end() - 2));
  const Dim& first = shape[rank - 2];
  const Dim& second = shape[rank - 1];
  return {std::move(batch), transposed ? second : first, transposed ? first : second};
}

void require_equal_inner(const InferContext& context, const MatMulOperand& a,
                         const MatMulOperand& b) {
  if (!a.columns.is_known() || !b.rows.is_known() || a.columns.same_as(b.rows)) return;
  context.fail(ErrorKind::shape, "cannot multiply ", context.input(0).type(), " by ",
               context.input(1).type(), ": inner dims ", a.columns, " and ", b.rows, " differ");
}

bool attribute_flag(const InferContext& context, std::string_view name) {
  return context.attributes().get_int(name, 0) != 0;
}

void infer_product(InferContext& context, int least_rank) {
  context.require_same_dtype({0, 1});
  const bool transposes_a = attribute_flag(context, "transA");
  const bool transposes_b = attribute_flag(context, "transB");
  const SymShape* const a_shape = context.shape(0);
  const SymShape* const b_shape = context.shape(1);
  for (const int i : {0, 1}) context.require_rank(i, least_rank, INT32_MAX);
  if (a_shape == nullptr || b_shape == nullptr) return context.set_output(0, context.dtype(0));

  const MatMulOperand a = split_operand(*a_shape, transposes_a);
  const MatMulOperand b = split_operand(*b_shape, transposes_b, /*pads_column=*/true);
  require_equal_inner(context, a, b);
  std::vector<Dim> dims = broadcast(context, a.batch, b.batch).dims();
  if (a_shape->rank() > 1) dims.push_back(a.rows);
  if (b_shape->rank() > 1) dims.push_back(b.columns);
  context.set_output(0, context.dtype(0), SymShape(std::move(dims)));
}

void infer_gemm(InferContext& context) {
  for (const int i : {1, 2}) context.require_same_dtype({0, i});
  for (const int i : {0, 1}) context.require_rank(i, 2, 2);
  context.require_rank(2, 0, 2);
  context.attributes().get_float("alpha", 1.0F);
  context.attributes().get_float("beta", 1.0F);
  MatMulOperand a;
  MatMulOperand b;
  if (const SymShape* const shape = context.shape(0)) {
    a = split_operand(*shape, attribute_flag(context, "transA"));
  }
  if (const SymShape* const shape = context.shape(1)) {
    b = split_operand(*shape, attribute_flag(context, "transB"));
  }
  require_equal_inner(context, a, b);
  SymShape y{a.rows, b.columns};
  if (const SymShape* const c = context.shape(2)) {
    const SymShape joined = broadcast(context, y, *c);
    for (int axis = 0; axis < 2; ++axis) {
      if (y[axis].is_known() && !joined[axis].same_as(y[axis])) {
        context.fail(ErrorKind::shape, "C of shape ", *c, " does not broadcast to ", y);
      }
    }
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

Attributes flags(bool transposes_a, bool transposes_b) {
  return {{"transA", transposes_a ? 1 : 0}, {"transB", transposes_b ? 1 : 0}};
}

/// a' b' of matrices, or of batches of them; no operand is transposed in memory.
Expr product_of(const Expr& a, const Expr& b, bool transposes_a, bool transposes_b,
                float alpha = 1.0F) {
  Attributes attributes = flags(transposes_a, transposes_b);
  if (a.rank() > 2 || b.rank() > 2) return call_internal("BatchedMatMul", {a, b}, attributes);
  if (alpha != 1.0F) attributes.set({"alpha", alpha});
  return call("Gemm", {a, b}, attributes);
}

std::vector<Expr> lower_batched_matmul(const Node& node, Builder& builder) {
  const auto operand = [&](int index, std::string_view transposes) {
    const Expr x = builder.expr(node.input(index));
    return node.attributes.get_int(transposes, 0) != 0 ? transpose_last(x) : x;
  };
  return {matmul(operand(0, "transA"), operand(1, "transB"))};
}

/// Gradients of alpha a' b' (source: Magnus and Neudecker, Matrix Differential Calculus, 9.3):
/// da' = alpha dy b'^T and db' = alpha a'^T dy, transposed where the operand was.
std::vector<Expr> product_gradients(const Expr& a, const Expr& b, const Expr& dy, bool transposes_a,
                                    bool transposes_b, float alpha = 1.0F) {
  const Expr da = transposes_a ? product_of(b, dy, transposes_b, true, alpha)
                               : product_of(dy, b, false, !transposes_b, alpha);
  const Expr db = transposes_b ? product_of(dy, a, true, transposes_a, alpha)
                               : product_of(a, dy, !transposes_a, false, alpha);
  return {da, db};
}

std::vector<Expr> gemm_rule(const Gradient& g) {
  std::vector<Expr> gradients = product_gradients(
      g.x(0), g.x(1), g.dy(), g.attributes().get_int("transA", 0) != 0,
      g.attributes().get_int("transB", 0) != 0, g.attributes().get_float("alpha", 1.0F));
  if (!g.x(2)) return gradients;
  const float beta = g.attributes().get_float("beta", 1.0F);
  gradients.push_back(beta == 1.0F ? g.dy() : g.dy() * beta);
  return gradients;
}

std::vector<Expr> batched_rule(const Gradient& g) {
  return product_gradients(g.x(0), g.x(1), g.dy(), g.attributes().get_int("transA", 0) != 0,
                           g.attributes().get_int("transB", 0) != 0);
}

/// With one matrix b for the whole batch, all rows of a are one tall matrix: db is one product.
std::vector<Expr> matmul_rule(const Gradient& g) {
  const Expr a = g.x(0);
  const Expr b = g.x(1);
  const Shape as = a.shape();
  const Shape bs = b.shape();
  const int a_rank = as.rank();
  const int b_rank = bs.rank();
  const std::int64_t inner = as[a_rank - 1];
  const std::int64_t columns = b_rank == 1 ? 1 : bs[b_rank - 1];
  if (b_rank <= 2 || (a_rank >= b_rank && bs.size(0, b_rank - 2) == 1)) {
    const std::int64_t rows = as.size(0, a_rank - 1);
    const std::vector<Expr> gradients =
        product_gradients(reshape(a, {rows, inner}), reshape(b, {inner, columns}),
                          reshape(g.dy(), {rows, columns}), false, false);
    return {reshape(gradients[0], as), reshape(gradients[1], bs)};
  }
  if (a_rank > 1) return product_gradients(a, b, g.dy(), false, false);
  std::vector<std::int64_t> dy_dims = g.dy().shape().dims();
  dy_dims.insert(dy_dims.end() - 1, 1);
  return product_gradients(reshape(a, {1, inner}), b, reshape(g.dy(), Shape(dy_dims)), false,
                           false);
}

std::vector<Sample> matmul_samples() {
  return {
      {"matrices", {{{3, 5}}, {{5, 7}}}},
      {"vector_vector", {{{5}}, {{5}}}},
      {"vector_matrix", {{{5}}, {{5, 3}}}},
      {"matrix_vector", {{{3, 5}}, {{5}}}},
      {"batch_vector", {{{2, 3, 5}}, {{5}}}},
      {"vector_batch", {{{5}}, {{2, 5, 3}}}},
      {"one_b_for_batch", {{{2, 3, 5}}, {{5, 4}}}},
      {"one_b_of_rank_3", {{{2, 3, 5}}, {{1, 5, 4}}}},
      {"one_a_for_batch", {{{3, 5}}, {{2, 5, 4}}}},
      {"batches", {{{2, 3, 4, 5}}, {{2, 3, 5, 2}}}},
      {"broadcast_both", {{{2, 1, 4, 5}}, {{3, 5, 2}}}},
      {"broadcast_outer", {{{2, 3, 4, 5}}, {{1, 3, 5, 2}}}},
      {"ones", {{{1, 1}}, {{1, 1}}}},
      {"no_rows", {{{0, 3}}, {{3, 2}}}},
      {"no_columns", {{{2, 3}}, {{3, 0}}}},
      {"no_inner", {{{2, 0}}, {{0, 3}}}},
      {"no_batch", {{{0, 2, 3}}, {{0, 3, 2}}}},
      {.name = "over_threads", .inputs = {{{67, 45}}, {{45, 131}}}},
      {.name = "tall_over_threads", .inputs = {{{131, 45}}, {{45, 67}}}},
      {"row_over_threads", {{{1, 301}}, {{301, 213}}}},
      {"column_over_threads", {{{301, 213}}, {{213, 1}}}},
      {"large_b", {{{3, 17}}, {{17, 31000}}}},
  };
}

std::vector<Sample> transposed_samples(const Shape& a, const Shape& a_transposed, const Shape& b,
                                       const Shape& b_transposed) {
  return {
      {"plain", {{a}, {b}}},
      {"trans_a", {{a_transposed}, {b}}, flags(true, false)},
      {"trans_b", {{a}, {b_transposed}}, flags(false, true)},
      {"trans_both", {{a_transposed}, {b_transposed}}, flags(true, true)},
  };
}

std::vector<Sample> gemm_samples() {
  std::vector<Sample> samples = transposed_samples({3, 5}, {5, 3}, {5, 7}, {7, 5});
  const auto with_c = [](std::string name, const Shape& c, Attributes attributes = {}) {
    return Sample{std::move(name), {{{3, 5}}, {{5, 7}}, {c}}, std::move(attributes)};
  };
  const Attributes alpha_beta{{"alpha", 0.5F}, {"beta", -2.0F}};
  samples.push_back(with_c("c_vector", {7}));
  samples.push_back(with_c("c_row", {1, 7}));
  samples.push_back(with_c("c_column", {3, 1}));
  samples.push_back(with_c("c_matrix", {3, 7}));
  samples.push_back(with_c("c_scalar", {}));
  samples.push_back(with_c("c_one", {1}));
  samples.push_back(with_c("alpha_beta_vector", {7}, alpha_beta));
  samples.push_back(with_c("alpha_beta_column", {3, 1}, alpha_beta));
  samples.push_back(with_c("beta_zero", {7}, {{"beta", 0.0F}}));
  samples.push_back({"alpha_without_c", {{{3, 5}}, {{5, 7}}}, {{"alpha", 0.5F}}});
  Attributes all = flags(true, true);
  all.set({"alpha", 1.5F});
  all.set({"beta", 0.5F});
  samples.push_back({"all", {{{5, 3}}, {{7, 5}}, {{3, 7}}}, all});
  samples.push_back({"no_inner", {{{2, 0}}, {{0, 3}}, {{3}}}});
  samples.push_back({"no_rows", {{{0, 2}}, {{2, 3}}, {{3}}}});
  samples.push_back({"ones", {{{1, 1}}, {{1, 1}}, {{1}}}});
  samples.push_back({"row", {{{1, 301}}, {{213, 301}}, {{213}}}, flags(false, true)});
  samples.push_back({"column", {{{301, 213}}, {{301, 1}}, {{1}}}, flags(true, false)});
  all = flags(true, false);
  all.set({"alpha", 1.5F});
  all.set({"beta", 0.5F});
  samples.push_back({"row_alpha_beta", {{{5, 1}}, {{5, 7}}, {{7}}}, all});
  samples.push_back({"over_threads", {{{65, 45}}, {{129, 45}}, {{129}}}, flags(false, true)});
  all = flags(true, false);
  all.set({"alpha", 1.5F});
  all.set({"beta", 0.5F});
  samples.push_back({"many_terms", {{{150, 70}}, {{150, 51}}, {{70, 51}}}, all});
  samples.push_back({"many_inner", {{{301, 19}}, {{301, 23}}}, flags(true, false)});
  samples.push_back({"many_inner_c", {{{301, 19}}, {{301, 23}}, {{19, 23}}}, flags(true, false)});
  samples.push_back({"more_inner", {{{517, 32}}, {{517, 80}}}, flags(true, false)});
  samples.push_back({"more_inner_narrow_b", {{{517, 80}}, {{517, 16}}}, flags(true, false)});
  samples.push_back({"large_b", {{{3, 17}}, {{17, 31000}}, {{31000}}}});
  return samples;
}

std::vector<Sample> batched_samples() {
  std::vector<Sample> samples = transposed_samples({2, 3, 5}, {2, 5, 3}, {2, 5, 4}, {2, 4, 5});
  samples.push_back({"one_a", {{{5, 3}}, {{2, 5, 4}}}, flags(true, false)});
  samples.push_back({"one_a_transposed_b", {{{3, 5}}, {{2, 4, 5}}}, flags(false, true)});
  samples.push_back({"one_b", {{{2, 3, 5}}, {{4, 5}}}, flags(false, true)});
  samples.push_back({"one_b_transposed_a", {{{2, 5, 3}}, {{5, 4}}}, flags(true, false)});
  samples.push_back({"broadcast_both", {{{2, 1, 5, 3}}, {{3, 4, 5}}}, flags(true, true)});
  samples.push_back({"no_batch", {{{0, 3, 2}}, {{0, 3, 4}}}, flags(true, false)});
  return samples;
}

/// Each element of the result is a sum over the last axis of a (the one before when transposed).
std::optional<std::int64_t> product_multiply_adds(const Node& node) {
  const std::optional<Shape> a = shape_if_known(node.input(0));
  const std::optional<Shape> y = shape_if_known(node.output(0));
  if (!a || !y || a->rank() == 0) return std::nullopt;
  const bool is_transposed = a->rank() > 1 && node.attributes.get_int("transA", 0) != 0;
  return checked_multiply(y->size(), (*a)[a->rank() - (is_transposed ? 2 : 1)]);
}

const std::vector<AttributeDef> kTransposes{{"transA", AttributeType::integer},
                                            {"transB", AttributeType::integer}};

}  // namespace

/// MatMul, Gemm and the internal BatchedMatMul: MatMul on matrices [..., r, c] (rank 2 at least)
/// that reads a, b or both transposed, for the gradients of MatMul.
void register_matmul(OpRegistry& registry) {
  registry.add({.name = "MatMul",
                .since = {{1}, {9, "integers"}, {13, "bfloat16"}},
                .inputs = {{"A"}, {"B"}},
                .outputs = {{"Y"}},
                .infer = [](InferContext& context) { infer_product(context, 1); },
                .weights = {0, 1},
                .mixed_precision = kProduct,
                .multiply_adds = product_multiply_adds,
                .backward = matmul_rule,
                .samples = matmul_samples});
  std::vector<AttributeDef> gemm_attributes = kTransposes;
  gemm_attributes.push_back({"alpha", AttributeType::number});
  gemm_attributes.push_back({"beta", AttributeType::number});
  registry.add({.name = "Gemm",
                .since = {{7, "C broadcasts"}, {9, "integers"}, {11, "C is optional"}, {13}},
                .inputs = {{"A"}, {"B"}, {"C", Arity::optional}},
                .outputs = {{"Y"}},
                .attributes = gemm_attributes,
                .infer = infer_gemm,
                .aliases = {{0, 2, AliasKind::in_place}},
                .weights = {0, 1, 2},
                .mixed_precision = kProduct,
                .multiply_adds = product_multiply_adds,
                .backward = gemm_rule,
                .samples = gemm_samples});
  registry.add({.name = "BatchedMatMul",
                .domain = kInternalDomain,
                .inputs = {{"A"}, {"B"}},
                .outputs = {{"Y"}},
                .attributes = kTransposes,
                .infer = [](InferContext& context) { infer_product(context, 2); },
                .multiply_adds = product_multiply_adds,
                .lower = lower_batched_matmul,
                .backward = batched_rule,
                .samples = batched_samples});
}

}  // namespace graft
