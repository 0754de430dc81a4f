#include <cmath>
#include <limits>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

enum GradInput { query, key, value, output, log_sum_exp, output_gradient, grad_bias };

int sequence_axis(const Attributes& attributes, int rank, std::string_view who) {
  const int axis = normalize_axis(attributes.get_int("sequence_axis", -2), rank, who);
  if (axis > rank - 2) {
    fail(ErrorKind::shape, who, ": sequence_axis ", axis, " leaves no axis of ", rank,
         " for the depth");
  }
  return axis;
}

void require_equal(const InferContext& context, const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail(ErrorKind::shape, "q, k and v do not fit: ", context.input(query).type(), ", ",
                 context.input(key).type(), ", ", context.input(value).type());
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

/// Checks q, k, v and the bias. False where their shapes are not known.
bool check_operands(const InferContext& context, int bias) {
  context.require_same_dtype({query, key, value});
  context.require_same_dtype({query, bias});
  for (const int i : {query, key, value}) context.require_rank(i, 2, INT32_MAX);
  const SymShape* const q = context.shape(query);
  const SymShape* const k = context.shape(key);
  const SymShape* const v = context.shape(value);
  if (q == nullptr || k == nullptr || v == nullptr) return false;
  const int rank = q->rank();
  if (k->rank() != rank || v->rank() != rank) {
    context.fail(ErrorKind::shape, "q, k and v must have one rank, found ", *q, ", ", *k, ", ", *v);
  }
  const int axis = sequence_axis(context.attributes(), rank, context.node().label());
  for (int i = 0; i < rank; ++i) {
    if (i == axis || i == rank - 1) continue;
    require_equal(context, (*q)[i], (*k)[i]);
    require_equal(context, (*q)[i], (*v)[i]);
  }
  require_equal(context, (*q)[rank - 1], (*k)[rank - 1]);
  require_equal(context, (*k)[axis], (*v)[axis]);
  if (context.has_input(bias)) check_bias(context, bias, scores_shape(*q, *k, axis));
  return true;
}

void infer_attention(InferContext& context) {
  constexpr int kBias = 3;
  const DType dtype = context.dtype(query);
  if (!check_operands(context, kBias)) {
    context.set_output(0, dtype);
    return context.set_output(1, dtype);
  }
  std::vector<Dim> dims = context.shape(query)->dims();
  dims.pop_back();
  context.set_output(1, dtype, SymShape(dims));
  const SymShape& v = *context.shape(value);
  dims.push_back(v[v.rank() - 1]);
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

void infer_attention_grad(InferContext& context) {
  context.require_same_dtype({query, output, log_sum_exp, output_gradient});
  check_operands(context, grad_bias);
  for (const int i : {query, key, value}) context.copy_type(i, i);
}

/// What the gradients of the rare outputs and inputs are made of, by ordinary ops, as matrices.
struct Pieces {
  explicit Pieces(const Gradient& g)
      : axis(sequence_axis(g.attributes(), g.x(query).rank(), g.node().label())),
        scale(static_cast<double>(g.attributes().get_float("scale", 1.0F))),
        q(rows(g.x(query))),
        k(rows(g.x(key))) {
    Expr scores = matmul(q, transpose_last(k)) * scale;
    if (g.x(3)) scores = scores + g.x(3);
    probabilities = exp(scores - rows(unsqueeze(g.y(1), {-1})));
  }

  /// [.., sequence, .., n] -> [..., sequence, n].
  Expr rows(const Expr& x) const { return moved(x, axis, x.rank() - 2); }
  Expr back(const Expr& x) const { return moved(x, x.rank() - 2, axis); }

  int axis;
  double scale;
  Expr q;
  Expr k;
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

/// dL/dbias = p (dy v^T - sum(dy y)), the gradient of the scores: all of them stand in memory, so
/// this is made only for a bias that trains.
Expr bias_gradient(const Gradient& g, const Pieces& pieces) {
  const Expr dy = pieces.rows(g.dy());
  const Expr share = reduce_sum(dy * pieces.rows(g.y()), {-1}, true);
  return pieces.probabilities * (matmul(dy, transpose_last(pieces.rows(g.x(value)))) - share);
}

std::vector<Expr> attention_rule(const Gradient& g) {
  std::vector<Expr> inputs{g.x(query), g.x(key), g.x(value), g.y(0), g.y(1), g.dy()};
  if (g.x(3)) inputs.push_back(g.x(3));
  std::vector<Expr> result =
      call_multi("TiledAttentionGrad", kInternalDomain, inputs, 3, g.attributes());
  const bool needs_bias = g.x(3) && g.needs(3);
  if (!needs_bias && !g.has_dy(1)) return result;
  const Pieces pieces(g);
  Expr bias;
  if (needs_bias) bias = bias_gradient(g, pieces);
  if (g.has_dy(1)) {  // log_sum_exp has the gradient p with respect to the scores
    const Expr flow = pieces.probabilities * pieces.rows(unsqueeze(g.dy(1), {-1}));
    result[0] = result[0] + pieces.back(matmul(flow, pieces.k) * pieces.scale);
    result[1] = result[1] + pieces.back(matmul(transpose_last(flow), pieces.q) * pieces.scale);
    if (needs_bias) bias = bias + flow;
  }
  result.push_back(bias);
  return result;
}

struct Case {
  std::string name;
  Shape q;
  Shape k;
  Shape v;
  std::optional<Shape> bias = std::nullopt;
  Attributes attributes{};
};

Attributes sequence_at(int axis) {
  return {{"sequence_axis", axis}, {"scale", 0.5F}};
}

std::vector<Case> cases() {
  const Attributes half{{"scale", 0.5F}};
  return {
      {"matrix", {5, 4}, {5, 4}, {5, 4}},
      {"heads", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}, {}, half},
      {"other_lengths", {2, 7, 4}, {2, 3, 4}, {2, 3, 6}, {}, half},
      {"bias", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{3, 5}, half},
      {"bias_of_keys", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{2, 1, 1, 5}, half},
      {"bias_of_queries", {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, Shape{2, 3, 1}},
      {"bias_of_heads", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{2, 3, 5}, half},
      {"sequence_first", {5, 2, 3, 4}, {6, 2, 3, 4}, {6, 2, 3, 2}, {}, sequence_at(0)},
      {"sequence_inside", {2, 5, 3, 4}, {2, 6, 3, 4}, {2, 6, 3, 2}, Shape{3, 5, 6}, sequence_at(1)},
      {"one_key", {3, 4, 2}, {3, 1, 2}, {3, 1, 2}},
      {"one_query", {3, 1, 2}, {3, 4, 2}, {3, 4, 2}},
      {"no_keys", {2, 3, 4}, {2, 0, 4}, {2, 0, 4}},
      {"no_queries", {2, 0, 4}, {2, 3, 4}, {2, 3, 4}},
      {"no_problems", {0, 3, 4}, {0, 3, 4}, {0, 3, 4}},
      {"no_depth", {2, 3, 0}, {2, 4, 0}, {2, 4, 2}},
      {"many_small", {4, 37, 16}, {4, 37, 16}, {4, 37, 16}, {}, sequence_at(0)},
      {"many_small_odd", {53, 3, 5}, {53, 6, 5}, {53, 6, 18}, Shape{53, 1, 6}, half},
      {"tiles", {2, 70, 16}, {2, 150, 16}, {2, 150, 16}, {}, half},
      {"tiles_odd", {3, 83, 21}, {3, 131, 21}, {3, 131, 37}, Shape{83, 131}, sequence_at(1)},
      {"tiles_inside", {2, 65, 3, 32}, {2, 65, 3, 32}, {2, 65, 3, 32}, {}, sequence_at(1)},
      {"tiles_deep", {1, 40, 80}, {1, 49, 80}, {1, 49, 64}, Shape{1, 1, 49}, half},
  };
}

/// A bias that is known before the run and shows each query the keys up to its own.
SampleInput causal(std::int64_t length) {
  SampleInput bias{.shape = {length, length}, .is_constant = true};
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      bias.values.push_back(j <= i ? 0.125 * static_cast<double>(j % 3)
                                   : -std::numeric_limits<double>::infinity());
    }
  }
  return bias;
}

std::vector<Sample> attention_samples() {
  std::vector<Sample> samples;
  for (const Case& c : cases()) {
    Sample sample{c.name, {{c.q}, {c.k}, {c.v}}, c.attributes, 2};
    if (c.bias) sample.inputs.push_back({*c.bias});
    if (c.name == "no_keys") {
      sample.no_gradient_check = "log_sum_exp is minus infinity";
    }
    samples.push_back(std::move(sample));
  }
  constexpr std::int64_t kLong = 150;
  const Shape shape{kLong, 2, 8};
  samples.push_back({"causal", {{shape}, {shape}, {shape}, causal(kLong)}, sequence_at(0), 2});
  samples.push_back({"far_from_zero",
                     {{{2, 20, 8}, 4.0, 5.0}, {{2, 20, 8}, 1.0, 4.0}, {{2, 20, 8}}},
                     {},
                     2,
                     "",
                     1e-5,
                     5e-5});
  return samples;
}

/// y, log_sum_exp and dy are any numbers: the formula does not ask whether they belong to q and k.
std::vector<Sample> attention_grad_samples() {
  std::vector<Sample> samples;
  for (const Case& c : cases()) {
    std::vector<std::int64_t> dims = c.q.dims();
    dims.pop_back();
    const double log_keys = std::log(static_cast<double>(c.k.size() + 1));
    const SampleInput sums{.shape = Shape(dims), .low = log_keys, .high = log_keys + 1.0};
    dims.push_back(c.v[c.v.rank() - 1]);
    Sample sample{
        c.name, {{c.q}, {c.k}, {c.v}, {Shape(dims)}, sums, {Shape(dims)}}, c.attributes, 3};
    if (c.bias) sample.inputs.push_back({*c.bias});
    samples.push_back(std::move(sample));
  }
  constexpr std::int64_t kLong = 150;
  const Shape shape{kLong, 2, 8};
  const SampleInput sums{.shape = {kLong, 2}, .low = 5.0, .high = 6.0};
  samples.push_back({"causal",
                     {{shape}, {shape}, {shape}, {shape}, sums, {shape}, causal(kLong)},
                     sequence_at(0),
                     3});
  return samples;
}

const std::vector<AttributeDef> kAttributes{{"scale", AttributeType::number},
                                            {"sequence_axis", AttributeType::integer}};

}  // namespace

/// Attention y = softmax(scale q k^T + bias) v whose scores are made tile by tile and are never in
/// memory as a whole, neither here nor for the gradient, which makes them again from log_sum_exp
/// (source: Dao, Fu, Ermon, Rudra and Re 2022, FlashAttention; Rabe and Staats 2021).
/// q: [.., query, .., depth], k: [.., key, .., depth], v: [.., key, .., n]; the sequence stands at
/// sequence_axis (by default next to last), the other axes count problems and are alike in all.
/// bias: broadcasts to [problem axes..., query, key]; minus infinity hides a key.
/// y: [.., query, .., n]; log_sum_exp: [.., query, ..], of the scores of each query.
void register_tiled_attention(OpRegistry& registry) {
  registry.add({.name = "TiledAttention",
                .domain = kInternalDomain,
                .inputs = {{"q"}, {"k"}, {"v"}, {"bias", Arity::optional}},
                .outputs = {{"y"}, {"log_sum_exp"}},
                .attributes = kAttributes,
                .infer = infer_attention,
                .backward = attention_rule,
                .samples = attention_samples});
  registry.add(
      {.name = "TiledAttentionGrad",
       .domain = kInternalDomain,
       .inputs = {{"q"}, {"k"}, {"v"}, {"y"}, {"log_sum_exp"}, {"dy"}, {"bias", Arity::optional}},
       .outputs = {{"dq"}, {"dk"}, {"dv"}},
       .attributes = kAttributes,
       .infer = infer_attention_grad,
       .backward = NotDifferentiable{"second derivatives of attention are not offered"},
       .samples = attention_grad_samples});
}

}  // namespace graft
