// Attention is written as MatMul, Softmax, MatMul with a bias between; start reading at `expand`.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/ops/attention/attention.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr int kMask = 3;
constexpr int kPastKey = 4;
constexpr int kPastValue = 5;
constexpr int kKeyLengths = 6;

bool has(const Node& node, int input) {
  return node.input(input) != nullptr;
}

/// Which positions a query may see, relative to its own (with the offset of the cache added).
struct Window {
  explicit Window(const Attributes& attributes)
      : left(attributes.get_int("left_window_size", -1)),
        right(attributes.get_int("right_window_size", -1)) {
    // Beyond any sequence, bounds are alike; clamped, sums with positions cannot overflow.
    constexpr std::int64_t kFar = std::int64_t{1} << 60;
    left = std::min(left, kFar);
    right = std::min(right, kFar);
    if (attributes.get_int("is_causal", 0) != 0) right = 0;
  }
  bool is_bounded() const { return left >= 0 || right >= 0; }

  std::int64_t left;   ///< -1: no bound
  std::int64_t right;  ///< -1: no bound
};

/// A constant [queries, keys] of f(query, key).
template <class T, class F>
Expr table(Builder& builder, std::int64_t queries, std::int64_t keys, F&& f) {
  Tensor values = Tensor::empty(dtype_of<T>, Shape{queries, keys});
  auto* to = values.values<T>().data();
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) *to++ = f(i, j);
  }
  return builder.expr(builder.constant(std::move(values)));
}

/// The parts of one node's expansion. All is computed in `type`: f32 also for f16 and bf16.
class Expansion {
 public:
  Expansion(const Node& node, Builder& builder)
      : node_(node),
        builder_(builder),
        window_(node.attributes),
        out_(node.input(kQuery)->dtype()),
        type_(out_ == DType::f64 ? DType::f64 : DType::f32),
        is_flat_(node.input(kQuery)->known_shape().rank() == 3) {}

  std::vector<Expr> run() {
    const Expr q = heads(kQuery, "q_num_heads");
    const Expr k = with_past(heads(kKey, "kv_num_heads"), kPastKey);
    const Expr v = with_past(heads(kValue, "kv_num_heads"), kPastValue);
    const Shape shape{q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
    const std::int64_t groups = k.shape()[1];
    Expr scores = reshape(products(q, k, groups), shape);
    Expr shown = scores;
    const std::int64_t mode = node_.attributes.get_int("qk_matmul_output_mode", 0);
    const auto cap = static_cast<double>(node_.attributes.get_float("softcap", 0.0F));
    if (cap > 0) scores = tanh(scores / cap) * cap;
    if (mode == 1) shown = scores;
    const Expr bias = bias_of(shape);
    if (bias) scores = scores + bias;
    if (mode == 2) shown = scores;
    const Expr weights = probabilities(scores, bias);
    if (mode == 3) shown = weights;
    Expr y = reshape(matmul(grouped_queries(weights, groups), v),
                     Shape{shape[0], shape[1], shape[2], v.shape()[3]});
    if (is_flat_) y = reshape(transpose(y, {0, 2, 1, 3}), node_.output(0)->known_shape());
    return {cast(y, out_), result(1, k), result(2, v), result(3, shown)};
  }

 private:
  Expr input(int index) const { return builder_.expr(node_.input(index)); }

  Expr result(int output, const Expr& e) const {
    return node_.output(output) != nullptr ? cast(e, node_.output(output)->dtype()) : Expr();
  }

  /// scale * Q K^T
  Expr products(const Expr& q, const Expr& k, std::int64_t groups) const {
    const double scale = node_.attributes.has("scale")
                             ? static_cast<double>(node_.attributes.get_float("scale", 1.0F))
                             : 1.0 / std::sqrt(static_cast<double>(q.shape()[3]));
    return matmul(grouped_queries(q * scale, groups), transpose_last(k));
  }

  /// [B, H, S, D]
  Expr heads(int index, std::string_view count) const {
    const Expr x = cast(input(index), type_);
    if (!is_flat_) return x;
    const std::int64_t number = node_.attributes.get_int(count, 1);
    const Shape s = x.shape();
    return transpose(reshape(x, {s[0], s[1], number, s[2] / number}), {0, 2, 1, 3});
  }

  Expr with_past(const Expr& x, int past) const {
    if (!has(node_, past)) return x;
    return call("Concat", {cast(input(past), type_), x}, {{"axis", 2}});
  }

  /// Heads that share keys and values follow one another: [B, H, L, D] -> [B, groups, H/groups * L,
  /// D], so that no key has to be repeated.
  static Expr grouped_queries(const Expr& x, std::int64_t groups) {
    const Shape s = x.shape();
    if (groups == s[1] || groups == 0) return x;
    return reshape(x, {s[0], groups, s[1] / groups * s[2], s[3]});
  }

  Expr minus_infinity() const {
    return builder_.expr(
        builder_.constant(Tensor::full(type_, Shape{}, -std::numeric_limits<double>::infinity())));
  }
  Expr where_not(const Expr& allowed) const {
    const Expr zero = builder_.expr(builder_.constant(Tensor::zeros(type_, Shape{})));
    return where(allowed, zero, minus_infinity());
  }

  /// What is added to the scores, broadcasting to `scores`: 0 or minus infinity, or a float mask.
  /// Empty when every query sees every key.
  Expr bias_of(const Shape& scores) const {
    Expr bias;
    const auto add = [&](const Expr& more) { bias = bias ? bias + more : more; };
    if (has(node_, kMask)) {
      const Expr mask = padded_mask(scores[3]);
      add(mask.dtype() == DType::boolean ? where_not(mask) : cast(mask, type_));
    }
    if (scores.size() == 0) return bias;
    const bool has_lengths = has(node_, kKeyLengths);
    if (window_.is_bounded()) {
      add(has_lengths && !has(node_, kPastKey) ? window_after_lengths(scores)
                                               : fixed_window(scores));
    }
    if (has_lengths) {
      const Expr keys = table<std::int64_t>(builder_, 1, scores[3], [](auto, auto j) { return j; });
      add(where_not(less(keys, lengths())));
    }
    return bias;
  }

  /// A mask may end before the keys do; the rest is masked.
  Expr padded_mask(std::int64_t keys) const {
    const Expr mask = input(kMask);
    const Shape s = mask.shape();
    const std::int64_t missing = keys - s[s.rank() - 1];
    if (missing <= 0) return mask;
    std::vector<std::int64_t> dims = s.dims();
    dims.back() = missing;
    const double masked =
        mask.dtype() == DType::boolean ? 0.0 : -std::numeric_limits<double>::infinity();
    const Expr one = builder_.expr(builder_.constant(Tensor::full(mask.dtype(), Shape{}, masked)));
    return call("Concat", {mask, expand(one, Shape(dims))}, {{"axis", -1}});
  }

  /// [B, 1, 1, 1]
  Expr lengths() const { return unsqueeze(cast(input(kKeyLengths), DType::i64), {1, 2, 3}); }

  /// The offset is the length of the past, known when the plan is made.
  Expr fixed_window(const Shape& scores) const {
    const std::int64_t offset = has(node_, kPastKey) ? node_.input(kPastKey)->known_shape()[2] : 0;
    const auto seen = [&](std::int64_t i, std::int64_t j) {
      const std::int64_t ahead = j - (i + offset);
      return (window_.right < 0 || ahead <= window_.right) &&
             (window_.left < 0 || -ahead <= window_.left);
    };
    const Expr bias = table<float>(builder_, scores[2], scores[3], [&](auto i, auto j) {
      return seen(i, j) ? 0.0F : -std::numeric_limits<float>::infinity();
    });
    return cast(bias, type_);
  }

  /// The offset of a sample is its number of keys less the number of queries.
  Expr window_after_lengths(const Shape& scores) const {
    const auto ahead_of_first = [&](std::int64_t i, std::int64_t j) { return j - i + scores[2]; };
    const auto table_of = [&](std::int64_t shift) {
      return table<std::int64_t>(builder_, scores[2], scores[3],
                                 [&](auto i, auto j) { return ahead_of_first(i, j) + shift; });
    };
    Expr allowed;
    if (window_.right >= 0) {
      allowed = logical_not(greater(table_of(-window_.right), lengths()));
    }
    if (window_.left >= 0) {
      const Expr left = logical_not(less(table_of(window_.left), lengths()));
      allowed = allowed ? call("And", {allowed, left}) : left;
    }
    return where_not(allowed);
  }

  /// Softmax over the keys; 0 for a query that sees none.
  Expr probabilities(Expr scores, const Expr& bias) const {
    const std::int64_t number = node_.attributes.get_int("softmax_precision", 0);
    const bool is_double = number == static_cast<int>(DType::f64);
    Expr blind;
    if (bias && scores.shape().size() > 0 && may_blind()) {
      const Expr most = call("ReduceMax", {bias, constant_ints(builder_, {-1})});
      blind = equal(most, minus_infinity());
      // Finite scores keep NaN out of the gradients too.
      scores = where(blind, constant_like(scores, 0.0), scores);
    }
    if (is_double) scores = cast(scores, DType::f64);
    const Expr weights = cast(call("Softmax", {scores}, {{"axis", -1}}), type_);
    return blind ? where(blind, constant_like(weights, 0.0), weights) : weights;
  }

  /// Whether some query may see no key. A window alone leaves at least its own position, where
  /// there is such a key.
  bool may_blind() const {
    if (has(node_, kMask) || has(node_, kKeyLengths)) return true;
    return window_.left >= 0;
  }

  const Node& node_;
  Builder& builder_;
  Window window_;
  DType out_;
  DType type_;
  bool is_flat_;
};

std::vector<Expr> expand_attention(const Node& node, Builder& builder) {
  return Expansion(node, builder).run();
}

}  // namespace

/// Scaled dot-product attention (Vaswani et al. 2017) with grouped heads, masks and caches.
void register_attention(OpRegistry& registry) {
  registry.add({.name = "Attention",
                .since = {{23}, {24, "nonpad_kv_seqlen"}, {25, "windows"}},
                .inputs = {{"Q"},
                           {"K"},
                           {"V"},
                           {"attn_mask", Arity::optional},
                           {"past_key", Arity::optional},
                           {"past_value", Arity::optional},
                           {"nonpad_kv_seqlen", Arity::optional}},
                .outputs = {{"Y"},
                            {"present_key", Arity::optional},
                            {"present_value", Arity::optional},
                            {"qk_matmul_output", Arity::optional}},
                .attributes = {{"is_causal", AttributeType::integer},
                               {"kv_num_heads", AttributeType::integer},
                               {"left_window_size", AttributeType::integer},
                               {"q_num_heads", AttributeType::integer},
                               {"qk_matmul_output_mode", AttributeType::integer},
                               {"right_window_size", AttributeType::integer},
                               {"scale", AttributeType::number},
                               {"softcap", AttributeType::number},
                               {"softmax_precision", AttributeType::integer}},
                .infer = infer_attention,
                .backward = Decomposition{expand_attention},
                .samples = attention_samples});
}

}  // namespace graft
