#include <cmath>

#include "core/ops/attention/attention.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// Each step becomes some ten nodes.
constexpr std::int64_t kMostSteps = 1024;

constexpr int kPastState = 3;
constexpr int kDecay = 4;
constexpr int kBeta = 5;

bool has_decay(std::string_view rule) {
  return rule == "gated" || rule == "gated_delta";
}
bool has_beta(std::string_view rule) {
  return rule == "delta" || rule == "gated_delta";
}
std::string rule_of(const Attributes& attributes) {
  return attributes.get_string("update_rule", "gated_delta");
}

void check_rule(const InferContext& context) {
  const std::string rule = rule_of(context.attributes());
  if (rule != "linear" && !has_decay(rule) && !has_beta(rule)) {
    context.fail(ErrorKind::model, "update_rule is '", rule,
                 "', wanted linear, gated, delta or gated_delta");
  }
  if (has_decay(rule) != context.has_input(kDecay)) {
    context.fail(ErrorKind::model, "update_rule '", rule, "' goes ",
                 has_decay(rule) ? "with" : "without", " decay");
  }
  if (has_beta(rule) != context.has_input(kBeta)) {
    context.fail(ErrorKind::model, "update_rule '", rule, "' goes ",
                 has_beta(rule) ? "with" : "without", " beta");
  }
}

/// Size of one of `heads` heads.
Dim head_size(const InferContext& context, int input, std::int64_t heads) {
  const SymShape* const shape = context.shape(input);
  if (shape == nullptr || !(*shape)[2].is_known()) return {};
  const std::int64_t size = (*shape)[2].value();
  if (size % heads != 0) {
    context.fail(ErrorKind::shape, "input '", context.input(input).name(), "' is ", *shape,
                 ", whose last dim is no multiple of ", heads, " heads");
  }
  return size / heads;
}

void check_last_dim(const InferContext& context, int input, std::int64_t a, const Dim& b) {
  const SymShape* const shape = context.shape(input);
  if (shape == nullptr || !(*shape)[2].is_known() || !b.is_known()) return;
  const std::int64_t found = (*shape)[2].value();
  if (found != a && found != b.value()) {
    context.fail(ErrorKind::shape, "input '", context.input(input).name(), "' is ", *shape,
                 ", wanted a last dim of ", a, " or ", b);
  }
}

/// Batch and length are those of the query.
void check_like(const InferContext& context, int input, int axis) {
  if (context.shape(kQuery) != nullptr) {
    require_dim(context, input, axis, (*context.shape(kQuery))[axis]);
  }
}

void check_state(const InferContext& context, std::int64_t heads, const Dim& key_size,
                 const Dim& value_size) {
  check_like(context, kPastState, 0);
  require_dim(context, kPastState, 1, heads);
  require_dim(context, kPastState, 2, key_size);
  require_dim(context, kPastState, 3, value_size);
}

void infer_linear_attention(InferContext& context) {
  check_rule(context);
  const std::int64_t queries = context.attributes().get_int("q_num_heads", 0);
  const std::int64_t heads = context.attributes().get_int("kv_num_heads", 0);
  if (heads < 1 || queries < 1 || queries % heads != 0) {
    context.fail(ErrorKind::model, "q_num_heads is ", queries, ", kv_num_heads ", heads,
                 ", wanted a multiple of a positive number");
  }
  for (const int input : {kQuery, kKey, kValue, kDecay, kBeta}) context.require_rank(input, 3, 3);
  context.require_rank(kPastState, 4, 4);
  const Dim size = head_size(context, kQuery, queries);
  const Dim key_size = head_size(context, kKey, heads);
  const Dim value_size = head_size(context, kValue, heads);
  if (size.is_known() && key_size.is_known() && size.value() != key_size.value()) {
    context.fail(ErrorKind::shape, "head sizes of query and key differ: ", size, " and ", key_size);
  }
  check_last_dim(context, kDecay, heads,
                 key_size.is_known() ? Dim(checked_multiply(heads, key_size.value())) : Dim());
  check_last_dim(context, kBeta, heads, 1);
  for (const int input : {kKey, kValue, kDecay, kBeta}) {
    for (const int axis : {0, 1}) check_like(context, input, axis);
  }
  check_state(context, heads, key_size, value_size);
  const SymShape* const q = context.shape(kQuery);
  const DType state = context.dtype(context.has_input(kPastState) ? kPastState : kQuery);
  if (q == nullptr) {
    context.set_output(0, context.dtype(kQuery));
    return context.set_output(1, state);
  }
  const Dim width =
      value_size.is_known() ? Dim(checked_multiply(queries, value_size.value())) : Dim();
  context.set_output(0, context.dtype(kQuery), SymShape{(*q)[0], (*q)[1], width});
  context.set_output(1, state, SymShape{(*q)[0], heads, key_size, value_size});
}

/// The state S [B, H, K, V] of each head of keys and values: S *= exp(decay), then S += k v^T, with
/// v = beta (v - S^T k) in the delta rules; a query reads scale * q S.
class Recurrence {
 public:
  Recurrence(const Node& node, Builder& builder)
      : node_(node),
        builder_(builder),
        type_(node.input(kQuery)->dtype() == DType::f64 ? DType::f64 : DType::f32),
        heads_(node.attributes.get_int("kv_num_heads", 1)),
        q_(split(kQuery, node.attributes.get_int("q_num_heads", 1))),
        k_(split(kKey, heads_)),
        v_(split(kValue, heads_)) {
    if (node.input(kDecay) != nullptr) decay_ = exp(split(kDecay, heads_));
    if (node.input(kBeta) != nullptr) {
      beta_ = split(kBeta, node.input(kBeta)->known_shape()[2]);
    }
    const Shape shape = node.output(1)->known_shape();
    state_ = node.input(kPastState) != nullptr ? input(kPastState)
                                               : expand(constant_like(q_, 0.0), shape);
    const auto given = static_cast<double>(node.attributes.get_float("scale", 0.0F));
    scale_ = given != 0 ? given : 1.0 / std::sqrt(static_cast<double>(shape[2]));
  }

  std::vector<Expr> run() {
    const Shape shape = node_.output(0)->known_shape();
    std::vector<Expr> results;
    for (std::int64_t t = 0; t < shape[1]; ++t) results.push_back(step(t));
    Expr y = results.empty() ? expand(constant_like(q_, 0.0), shape)
                             : call("Concat", results, {{"axis", 1}});
    return {cast(y, node_.output(0)->dtype()), cast(state_, node_.output(1)->dtype())};
  }

 private:
  Expr input(int index) const { return cast(builder_.expr(node_.input(index)), type_); }

  /// [B, T, H * D] as [B, T, H, D]
  Expr split(int index, std::int64_t heads) const {
    const Expr x = input(index);
    const Shape s = x.shape();
    return reshape(x, {s[0], s[1], heads, s[2] / heads});
  }

  /// Row t of [B, T, H, D], as [B, H, D].
  static Expr at(const Expr& x, std::int64_t t) {
    Builder& builder = x.builder();
    const Expr row = call("Slice", {x, constant_ints(builder, {t}), constant_ints(builder, {t + 1}),
                                    constant_ints(builder, {1})});
    const Shape s = x.shape();
    return reshape(row, {s[0], s[2], s[3]});
  }

  /// [B, 1, H of queries * V]
  Expr step(std::int64_t t) {
    if (decay_) state_ = state_ * unsqueeze(at(decay_, t), {-1});
    const Expr k = at(k_, t);
    Expr v = unsqueeze(at(v_, t), {2});
    if (beta_) v = (v - matmul(unsqueeze(k, {2}), state_)) * unsqueeze(at(beta_, t), {2});
    state_ = state_ + unsqueeze(k, {3}) * v;
    // Query heads of one state follow one another.
    const Shape s = q_.shape();
    const Expr q = reshape(at(q_, t) * scale_, {s[0], heads_, s[2] / heads_, s[3]});
    return reshape(matmul(q, state_), {s[0], 1, node_.output(0)->known_shape()[2]});
  }

  const Node& node_;
  Builder& builder_;
  DType type_;
  std::int64_t heads_;
  Expr q_;
  Expr k_;
  Expr v_;
  Expr decay_;
  Expr beta_;
  Expr state_;
  double scale_ = 1.0;
};

std::vector<Expr> expand_linear_attention(const Node& node, Builder& builder) {
  const std::int64_t steps = node.input(kQuery)->known_shape()[1];
  if (steps > kMostSteps) {
    fail(ErrorKind::unsupported, node.label(), ": ", steps, " steps, at most ", kMostSteps,
         " are unrolled; cut the sequence and pass the state on");
  }
  return Recurrence(node, builder).run();
}

std::vector<Sample> linear_attention_samples() {
  const SampleInput x{{2, 3, 4}};
  const SampleInput factor{{2, 3, 2}};
  const auto sample = [&](const char* rule, std::vector<SampleInput> more) {
    Sample one{
        rule, {x, x, x}, {{"q_num_heads", 2}, {"kv_num_heads", 2}, {"update_rule", rule}}, 2};
    one.inputs.insert(one.inputs.end(), more.begin(), more.end());
    return one;
  };
  std::vector<Sample> samples{
      sample("linear", {}),
      sample("gated", {absent(), x}),
      sample("delta", {{{2, 2, 2, 2}}, absent(), factor}),
      sample("gated_delta", {absent(), factor, {{2, 3, 1}}}),
  };
  Sample grouped = sample("linear", {});
  grouped.name = "grouped";
  grouped.inputs[0] = {{2, 3, 8}};
  grouped.attributes.set({"q_num_heads", 4});
  grouped.attributes.set({"scale", 0.3F});
  samples.push_back(grouped);
  grouped.name = "one_state";
  for (const std::size_t input : {1, 2}) grouped.inputs[input] = {{2, 3, 2}};
  grouped.attributes.set({"kv_num_heads", 1});
  grouped.attributes.set({"chunk_size", 2});
  samples.push_back(std::move(grouped));
  for (const Shape& shape : {Shape{0, 3, 4}, Shape{2, 0, 4}}) {
    Sample empty = sample("linear", {});
    empty.name = shape[0] == 0 ? "no_samples" : "no_steps";
    for (SampleInput& input : empty.inputs) input.shape = shape;
    samples.push_back(std::move(empty));
  }
  return samples;
}

}  // namespace

/// Linear attention (Katharopoulos et al. 2020) with gates and the delta rule (Yang et al. 2024),
/// unrolled over the steps.
void register_linear_attention(OpRegistry& registry) {
  registry.add({.name = "LinearAttention",
                .since = {{27}},
                .inputs = {{"query"},
                           {"key"},
                           {"value"},
                           {"past_state", Arity::optional},
                           {"decay", Arity::optional},
                           {"beta", Arity::optional}},
                .outputs = {{"output"}, {"present_state"}},
                .attributes = {{"chunk_size", AttributeType::integer},
                               {"kv_num_heads", AttributeType::integer, true},
                               {"q_num_heads", AttributeType::integer, true},
                               {"scale", AttributeType::number},
                               {"update_rule", AttributeType::text}},
                .infer = infer_linear_attention,
                .backward = Decomposition{expand_linear_attention},
                .samples = linear_attention_samples});
}

}  // namespace graft
