#include <array>

#include "core/base/at.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/tiled_attention.h"
#include "core/ops/builder.h"
#include "core/ops/cost.h"
#include "core/ops/f32_twin.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

// Of the gradient.
constexpr int kShare = 3;
constexpr int kLogSumExp = 4;
constexpr int kOutputGradient = 5;

int sequence_axis(const Attributes& attributes, int rank, std::string_view who) {
  const int axis = normalize_axis(attributes.get_int("sequence_axis", -2), rank, who);
  if (axis > rank - 2) {
    fail(ErrorKind::shape, who, ": sequence_axis ", axis, " leaves no axis of ", rank,
         " for the depth");
  }
  return axis;
}

using OperandShapes = std::array<SymShape, 3>;

/// Of q, k and v that stand side by side in `stack`.
OperandShapes shapes_in_stack(const InferContext& context, const SymShape& stack) {
  const std::string who = context.node().label();
  const int sequence = sequence_axis(context.attributes(), stack.rank() - 1, who);
  const int axis = *stack_axis_of(context.attributes(), stack.rank(), who);
  const bool has_three = !stack[axis].is_known() || stack[axis].value() == 3;
  if (axis <= sequence || axis > stack.rank() - 2 || !has_three) {
    context.fail(ErrorKind::shape, "stack_axis ", axis, " of ", stack,
                 " must hold q, k and v, between the sequence and the depth");
  }
  std::vector<Dim> dims = stack.dims();
  dims.erase(dims.begin() + axis);
  const SymShape part(std::move(dims));
  return {part, part, part};
}

/// nullopt where they are not known.
std::optional<OperandShapes> operand_shapes(const InferContext& context) {
  const bool is_stack = context.attributes().has("stack_axis");
  for (const int i : {kKey, kValue}) {
    if (context.has_input(i) != is_stack) continue;
    context.fail(ErrorKind::model, "input ", i, is_stack ? " stands in input 0" : " is missing");
  }
  context.require_rank(kQuery, is_stack ? 3 : 2, INT32_MAX);
  const SymShape* const q = context.shape(kQuery);
  if (is_stack) {
    return q == nullptr ? std::nullopt : std::optional(shapes_in_stack(context, *q));
  }
  for (const int i : {kKey, kValue}) context.require_rank(i, 2, INT32_MAX);
  const SymShape* const k = context.shape(kKey);
  const SymShape* const v = context.shape(kValue);
  if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
  return OperandShapes{*q, *k, *v};
}

void require_equal(const InferContext& context, const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail(ErrorKind::shape, "q, k and v do not fit: ", context.input(kQuery).type(), ", ",
                 context.input(kKey).type(), ", ", context.input(kValue).type());
  }
}

/// The shape of the scores: [problem axes..., query, key].
SymShape scores_shape(const SymShape& q, const SymShape& k, int axis) {
  std::vector<Dim> dims(q.begin(), q.end() - 1);
  dims.erase(dims.begin() + axis);
  dims.push_back(q[axis]);
  dims.push_back(k[axis]);
  return SymShape(std::move(dims));
}

/// Scores and what is summed of them are f32 where q, k and v are short floats.
DType score_type(const InferContext& context) {
  const DType dtype = context.dtype(kQuery);
  return is_short_float(dtype) ? DType::f32 : dtype;
}

void require_score_type(const InferContext& context, int input) {
  if (!context.has_input(input) || context.dtype(input) == score_type(context)) return;
  context.fail(ErrorKind::type, "input ", input, " is ", context.dtype(input), ", wanted ",
               score_type(context), " beside q of ", context.dtype(kQuery));
}

void check_bias(const InferContext& context, int bias, const SymShape& scores) {
  const SymShape* const shape = context.shape(bias);
  if (shape == nullptr) return;
  const SymShape joined = broadcast(context, scores, *shape);
  bool fits = joined.rank() == scores.rank();
  for (int i = 0; fits && i < scores.rank(); ++i) {
    fits = !scores[i].is_known() || !joined[i].is_known() || joined[i].same_as(scores[i]);
  }
  if (!fits) {
    context.fail(ErrorKind::shape, "a bias ", *shape, " does not broadcast to scores ", scores);
  }
}

/// Checks q, k, v and the bias. nullopt where the shapes of q, k and v are not known.
std::optional<OperandShapes> check_attention_operands(const InferContext& context, int bias) {
  context.require_same_dtype({kQuery, kKey, kValue});
  require_score_type(context, bias);
  std::optional<OperandShapes> shapes = operand_shapes(context);
  if (!shapes) return shapes;
  const auto& [q, k, v] = *shapes;
  const int rank = q.rank();
  if (k.rank() != rank || v.rank() != rank) {
    context.fail(ErrorKind::shape, "q, k and v must have one rank, found ", q, ", ", k, ", ", v);
  }
  const int axis = sequence_axis(context.attributes(), rank, context.node().label());
  for (int i = 0; i < rank; ++i) {
    if (i == axis || i == rank - 1) continue;
    require_equal(context, q[i], k[i]);
    require_equal(context, q[i], v[i]);
  }
  require_equal(context, q[rank - 1], k[rank - 1]);
  require_equal(context, k[axis], v[axis]);
  if (context.has_input(bias)) check_bias(context, bias, scores_shape(q, k, axis));
  return shapes;
}

void infer_tiled_attention(InferContext& context) {
  const DType dtype = context.dtype(kQuery);
  const std::optional<OperandShapes> shapes = check_attention_operands(context, kAttentionBias);
  if (!shapes) {
    context.set_output(0, dtype);
    return context.set_output(1, score_type(context));
  }
  std::vector<Dim> dims = (*shapes)[kQuery].dims();
  dims.pop_back();
  context.set_output(1, score_type(context), SymShape(dims));
  const SymShape& v = (*shapes)[kValue];
  dims.push_back(v[v.rank() - 1]);
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

void infer_attention_grad(InferContext& context) {
  context.require_same_dtype({kQuery, kOutputGradient});
  for (const int i : {kShare, kLogSumExp}) require_score_type(context, i);
  check_attention_operands(context, kAttentionGradBias);
  for (const int i : {kQuery, kKey, kValue}) {
    if (context.has_input(i)) context.copy_type(i, i);
  }
}

/// q, k and v, each by itself, in the type of scores.
std::vector<Expr> operands_of(const Gradient& g) {
  const Expr x = widened(g.x(kQuery));
  const std::optional<int> axis = stack_axis_of(g.attributes(), x.rank(), g.node().label());
  if (!axis) return {x, widened(g.x(kKey)), widened(g.x(kValue))};
  std::vector<Expr> parts = call_multi("Split", "", {x}, 3, {{"axis", *axis}, {"num_outputs", 3}});
  const Shape shape = query_shape(x.shape(), g.attributes(), g.node().label());
  for (Expr& part : parts) part = reshape(part, shape);
  return parts;
}

/// What the gradients of the rare outputs and inputs are made of, by ordinary ops, as matrices.
struct Pieces {
  explicit Pieces(const Gradient& g)
      : operands(operands_of(g)),
        axis(sequence_axis(g.attributes(), operands[kQuery].rank(), g.node().label())),
        scale(static_cast<double>(g.attributes().get_float("scale", 1.0F))),
        q(rows(operands[kQuery])),
        k(rows(operands[kKey])),
        v(rows(operands[kValue])) {
    Expr scores = matmul(q, transpose_last(k)) * scale;
    if (g.x(3)) scores = scores + g.x(3);
    probabilities = exp(scores - rows(unsqueeze(g.y(1), {-1})));
  }

  /// [.., sequence, .., n] -> [..., sequence, n].
  Expr rows(const Expr& x) const { return moved(x, axis, x.rank() - 2); }
  Expr back(const Expr& x) const { return moved(x, x.rank() - 2, axis); }

  std::vector<Expr> operands;
  int axis;
  double scale;
  Expr q;
  Expr k;
  Expr v;
  Expr probabilities;

 private:
  static Expr moved(const Expr& x, int from, int to) {
    if (from == to) return x;
    std::vector<std::int64_t> order;
    for (int i = 0; i < x.rank(); ++i) {
      if (i != from) order.push_back(i);
    }
    order.insert(order.begin() + to, from);
    return transpose(x, order);
  }
};

/// dL/dbias = p (dy v^T - dy y), the gradient of the scores: all of them stand in memory, so this
/// is made only for a bias that trains. `share`: dy y of each query.
Expr bias_gradient(const Gradient& g, const Pieces& pieces, const Expr& share) {
  return pieces.probabilities * (matmul(pieces.rows(widened(g.dy())), transpose_last(pieces.v)) -
                                 pieces.rows(unsqueeze(share, {-1})));
}

/// Adds more gradients of q and k.
void add_gradients(const Gradient& g, const Expr& dq, const Expr& dk, std::vector<Expr>& result) {
  const std::optional<int> axis =
      stack_axis_of(g.attributes(), g.x(kQuery).rank(), g.node().label());
  const auto add = [&](int input, const Expr& more) {
    Expr& sum = at(result, input);
    sum = sum + cast(more, sum.dtype());
  };
  if (axis) {
    const auto part = [&](const Expr& x) { return unsqueeze(x, {*axis}); };
    const Expr more = call("Concat", {part(dq), part(dk), part(zeros_like(dq))}, {{"axis", *axis}});
    add(kQuery, more);
  } else {
    add(kQuery, dq);
    add(kKey, dk);
  }
}

std::vector<Expr> attention_rule(const Gradient& g) {
  const Expr share = call_multi("RowDot", kInternalDomain, {g.dy(), g.y()}, 1).front();
  std::vector<Expr> inputs{g.x(kQuery), g.x(kKey), g.x(kValue), share, g.y(1), g.dy()};
  if (g.x(3)) inputs.push_back(g.x(3));
  const bool is_stack = g.attributes().has("stack_axis");
  std::vector<Expr> result =
      call_multi("TiledAttentionGrad", kInternalDomain, inputs, is_stack ? 1 : 3, g.attributes());
  result.resize(3);
  const bool needs_bias = g.x(3) && g.needs(3);
  if (!needs_bias && !g.has_dy(1)) return result;
  const Pieces pieces(g);
  Expr bias;
  if (needs_bias) bias = bias_gradient(g, pieces, share);
  if (g.has_dy(1)) {  // log_sum_exp has the gradient p with respect to the scores
    const Expr flow = pieces.probabilities * pieces.rows(unsqueeze(g.dy(1), {-1}));
    add_gradients(g, pieces.back(matmul(flow, pieces.k) * pieces.scale),
                  pieces.back(matmul(transpose_last(flow), pieces.q) * pieces.scale), result);
    if (needs_bias) bias = bias + flow;
  }
  result.push_back(bias);
  return result;
}

/// Every query meets every key `times_depth` times, and the values so many times.
template <std::int64_t times_depth, std::int64_t times_values>
std::optional<std::int64_t> attention_multiply_adds(const Node& node) {
  const bool is_stack = node.attributes.has("stack_axis");
  const std::optional<Shape> x = shape_if_known(node.input(kQuery));
  const std::optional<Shape> k = is_stack ? x : shape_if_known(node.input(kKey));
  const std::optional<Shape> v = is_stack ? x : shape_if_known(node.input(kValue));
  if (!x || !k || !v) return std::nullopt;
  const Shape q = query_shape(*x, node.attributes, node.label());
  if (q.size() == 0) return 0;
  const auto last = [](const Shape& shape) { return shape[shape.rank() - 1]; };
  // The axis of a stack comes behind that of the sequence.
  const std::int64_t keys = (*k)[sequence_axis(node.attributes, q.rank(), node.label())];
  const std::int64_t each =
      checked_add(checked_multiply(times_depth, last(q)), checked_multiply(times_values, last(*v)));
  return checked_multiply(checked_multiply(q.size() / last(q), keys), each);
}

const std::vector<AttributeDef> kTiledAttentionAttributes{{"scale", AttributeType::number},
                                                          {"sequence_axis", AttributeType::integer},
                                                          {"stack_axis", AttributeType::integer}};

}  // namespace

/// Attention y = softmax(scale q k^T + bias) v whose scores are made tile by tile and are never in
/// memory as a whole, neither here nor for the gradient, which makes them again from log_sum_exp
/// (source: Dao, Fu, Ermon, Rudra and Re 2022, FlashAttention; Rabe and Staats 2021).
/// q: [.., query, .., depth], k: [.., key, .., depth], v: [.., key, .., n]; the sequence stands at
/// sequence_axis (by default next to last), the other axes count problems and are alike in all.
/// With stack_axis, input 0 holds all three, side by side along that axis, which stands between the
/// sequence and the depth and which sequence_axis does not count; so does the gradient.
/// Gradients may stand in the place of q, k and v: a problem reads no operand of another one.
/// bias: broadcasts to [problem axes..., query, key]; minus infinity hides a key. It, log_sum_exp
/// and share are f32 where q, k and v are f16 or bf16.
/// y: [.., query, .., n]; log_sum_exp: [.., query, ..], of the scores of each query.
/// share: of the same shape, dy y of each query, so that the gradient need not keep y.
void register_tiled_attention(OpRegistry& registry) {
  registry.add(
      {.name = "TiledAttention",
       .domain = kInternalDomain,
       .inputs = {{"q"}, {"k", Arity::optional}, {"v", Arity::optional}, {"bias", Arity::optional}},
       .outputs = {{"y"}, {"log_sum_exp"}},
       .attributes = kTiledAttentionAttributes,
       .infer = infer_tiled_attention,
       .mixed_precision = {MixedPrecision::Kind::product_of_kernel, {kQuery, kKey, kValue}},
       .multiply_adds = attention_multiply_adds<1, 1>,
       .backward = attention_rule,
       .samples = tiled_attention_samples});
  registry.add({.name = "TiledAttentionGrad",
                .domain = kInternalDomain,
                .inputs = {{"q"},
                           {"k", Arity::optional},
                           {"v", Arity::optional},
                           {"share"},
                           {"log_sum_exp"},
                           {"dy"},
                           {"bias", Arity::optional}},
                .outputs = {{"dq"}, {"dk", Arity::optional}, {"dv", Arity::optional}},
                .attributes = kTiledAttentionAttributes,
                .infer = infer_attention_grad,
                .aliases = {{0, kQuery, AliasKind::in_place},
                            {1, kKey, AliasKind::in_place},
                            {2, kValue, AliasKind::in_place}},
                // The scores again, and two products more for each of the two.
                .multiply_adds = attention_multiply_adds<3, 2>,
                .backward = NotDifferentiable{"second derivatives of attention are not offered"},
                .samples = tiled_attention_grad_samples});
}

}  // namespace graft
