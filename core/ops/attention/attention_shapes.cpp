#include <array>

#include "core/base/at.h"
#include "core/ops/attention/attention.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// One of Q, K, V as [B, H, S, D], whatever is known of it.
struct Heads {
  Dim batch;
  Dim heads;
  Dim length;
  Dim size;
};

/// Throws Error{shape} where both are known and differ.
void require_equal(const InferContext& context, const Dim& a, const Dim& b, std::string_view what) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail(ErrorKind::shape, what, " differ: ", a, " and ", b);
  }
}

const Dim& known_one(const Dim& a, const Dim& b) {
  return a.is_known() ? a : b;
}

Dim head_size(const InferContext& context, const Dim& hidden, std::int64_t heads) {
  if (!hidden.is_known()) return {};
  if (hidden.value() % heads != 0) {
    context.fail(ErrorKind::shape, "a hidden size of ", hidden, " is no multiple of ", heads,
                 " heads");
  }
  return hidden.value() / heads;
}

Heads read_heads(const InferContext& context, int input, std::string_view count) {
  const SymShape* const shape = context.shape(input);
  if (shape == nullptr) return {};
  context.require_rank(input, 3, 4);
  if (shape->rank() == 4) return {(*shape)[0], (*shape)[1], (*shape)[2], (*shape)[3]};
  const std::int64_t heads = context.attributes().get_int(count, 0);
  if (heads < 1) {
    context.fail(ErrorKind::model, count, " is ", heads, ", wanted 1 or more for rank 3");
  }
  return {(*shape)[0], heads, (*shape)[1], head_size(context, (*shape)[2], heads)};
}

void check_types(const InferContext& context) {
  context.require_same_dtype({0, 1, 4});
  context.require_same_dtype({2, 5});
  if (context.dtype(0) != DType::undefined && !is_float(context.dtype(0))) {
    context.fail(ErrorKind::type, "Q is ", context.dtype(0), ", wanted a float type");
  }
  if (context.has_input(6)) {
    require_index_type(context, 6);
    context.require_rank(6, 1, 1);
  }
  const std::int64_t mode = context.attributes().get_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    context.fail(ErrorKind::model, "qk_matmul_output_mode is ", mode, ", wanted 0 to 3");
  }
  for (const std::string_view bound : {"left_window_size", "right_window_size"}) {
    if (context.attributes().get_int(bound, -1) < -1) {
      context.fail(ErrorKind::model, bound, " is below -1");
    }
  }
}

void check_heads(const InferContext& context, const Heads& q, const Heads& k, const Heads& v) {
  require_equal(context, q.batch, k.batch, "batch sizes of Q and K");
  require_equal(context, q.batch, v.batch, "batch sizes of Q and V");
  require_equal(context, k.heads, v.heads, "heads of K and V");
  require_equal(context, k.length, v.length, "lengths of K and V");
  require_equal(context, q.size, k.size, "head sizes of Q and K");
  if (!q.heads.is_known() || !k.heads.is_known()) return;
  const bool divides =
      k.heads.value() == 0 ? q.heads.value() == 0 : q.heads.value() % k.heads.value() == 0;
  if (!divides) {
    context.fail(ErrorKind::shape, q.heads, " heads of Q are no multiple of ", k.heads, " of K");
  }
}

/// Length of the past; the length of the cache that comes out is that plus `fresh`.
Dim with_past(const InferContext& context, int past, const Heads& fresh) {
  if (!context.has_input(past)) return fresh.length;
  context.require_rank(past, 4, 4);
  const SymShape* const shape = context.shape(past);
  if (shape == nullptr) return {};
  require_equal(context, (*shape)[0], fresh.batch, "batch sizes of cache and input");
  require_equal(context, (*shape)[1], fresh.heads, "heads of cache and input");
  require_equal(context, (*shape)[3], fresh.size, "head sizes of cache and input");
  if (!(*shape)[2].is_known() || !fresh.length.is_known()) return {};
  return checked_add((*shape)[2].value(), fresh.length.value());
}

void check_caches(const InferContext& context, const Dim& keys, const Dim& values) {
  if (context.has_input(4) != context.has_input(5)) {
    context.fail(ErrorKind::model, "past_key and past_value must be given together");
  }
  if (context.has_input(4) && context.has_input(6)) {
    context.fail(ErrorKind::model, "nonpad_kv_seqlen cannot be combined with past_key");
  }
  require_equal(context, keys, values, "lengths of the caches of K and V");
}

/// The mask broadcasts to the scores, but for its last axis, which may be shorter.
void check_mask(const InferContext& context, const SymShape& scores) {
  const SymShape* const mask = context.shape(3);
  if (mask == nullptr) return;
  context.require_rank(3, 1, 4);
  for (int axis = 0; axis < mask->rank(); ++axis) {
    const Dim& found = (*mask)[axis];
    const Dim& wanted = scores[axis + 4 - mask->rank()];
    if (!found.is_known() || !wanted.is_known()) continue;
    const bool fits = axis + 1 == mask->rank()
                          ? found.value() <= wanted.value()
                          : found.value() == 1 || found.value() == wanted.value();
    if (!fits) {
      context.fail(ErrorKind::shape, "attn_mask is ", *mask, ", which does not fit scores ",
                   scores);
    }
  }
}

Dim multiplied(const Dim& a, const Dim& b) {
  return a.is_known() && b.is_known() ? Dim(checked_multiply(a.value(), b.value())) : Dim();
}

Sample sample(std::string name, Shape q, Shape k, Attributes attributes = {}) {
  return {std::move(name),
          {{.shape = std::move(q)}, {.shape = k}, {.shape = k}},
          std::move(attributes)};
}

SampleInput lengths(std::vector<double> values) {
  SampleInput input = ints(std::move(values));
  input.is_constant = false;
  return input;
}

void add_cache_samples(std::vector<Sample>& samples) {
  const Shape q{2, 2, 3, 4};
  const Shape k{2, 2, 5, 4};
  const SampleInput past{{2, 2, 2, 4}};
  Sample cached = sample("past", q, q);
  cached.inputs.insert(cached.inputs.end(), {absent(), past, past});
  cached.outputs = 4;
  samples.push_back(cached);
  cached.name = "past_causal";
  cached.attributes = {{"is_causal", 1}, {"left_window_size", 2}};
  samples.push_back(cached);
  for (const int causal : {0, 1}) {
    Sample padded = sample(causal == 0 ? "padded" : "padded_causal", q, k, {{"is_causal", causal}});
    // With 2 keys for 3 queries, the first query of sample 1 sees none.
    padded.inputs.insert(padded.inputs.end(), {absent(), absent(), absent(), lengths({4, 2})});
    samples.push_back(padded);
  }
}

void add_mask_samples(std::vector<Sample>& samples) {
  const Shape q{2, 2, 3, 4};
  const Shape k{2, 2, 5, 4};
  const auto masked = [&](std::string name, SampleInput mask) {
    Sample one = sample(std::move(name), q, k);
    one.inputs.push_back(std::move(mask));
    samples.push_back(std::move(one));
  };
  masked("mask", {{3, 5}});
  masked("mask_of_heads", {{2, 1, 5}});
  masked("mask_of_batch", {{2, 1, 3, 5}});
  masked("short_mask", {{3, 4}});
  // The last query sees nothing.
  masked("bool_mask", {.shape = {3, 5},
                       .values = {1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
                       .dtype = DType::boolean});
}

}  // namespace

void infer_attention(InferContext& context) {
  check_types(context);
  const Heads q = read_heads(context, 0, "q_num_heads");
  const Heads k = read_heads(context, 1, "kv_num_heads");
  const Heads v = read_heads(context, 2, "kv_num_heads");
  for (const int other : {1, 2}) {
    const SymShape* const a = context.shape(0);
    const SymShape* const b = context.shape(other);
    if (a != nullptr && b != nullptr && a->rank() != b->rank()) {
      context.fail(ErrorKind::shape, "Q is ", *a, " and K or V ", *b, ", wanted one rank");
    }
  }
  check_heads(context, q, k, v);
  require_dim(context, 6, 0, q.batch);
  const Dim keys = with_past(context, 4, k);
  check_caches(context, keys, with_past(context, 5, v));
  const Dim batch = known_one(q.batch, k.batch);
  const SymShape scores{batch, q.heads, q.length, keys};
  check_mask(context, scores);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) {
    context.set_output(0, context.dtype(0));
  } else if (shape->rank() == 3) {
    context.set_output(0, context.dtype(0), SymShape{batch, q.length, multiplied(q.heads, v.size)});
  } else {
    context.set_output(0, context.dtype(0), SymShape{batch, q.heads, q.length, v.size});
  }
  const std::array<SymShape, 3> others{SymShape{batch, k.heads, keys, k.size},
                                       SymShape{batch, v.heads, keys, v.size}, scores};
  for (int output = 1; output < 4; ++output) {
    if (context.node().output(output) == nullptr) continue;
    context.set_output(output, context.dtype(output == 2 ? 2 : 0), at(others, output - 1));
  }
}

std::vector<Sample> attention_samples() {
  const Shape q{2, 2, 3, 4};
  const Shape k{2, 2, 5, 4};
  const Attributes flat{{"q_num_heads", 4}, {"kv_num_heads", 2}};
  std::vector<Sample> samples{
      sample("plain", q, k),
      sample("causal", q, k, {{"is_causal", 1}}),
      sample("scale", q, k, {{"scale", 0.3F}}),
      sample("softcap", q, k, {{"softcap", 0.5F}}),
      sample("grouped", {2, 6, 3, 4}, k, {{"is_causal", 1}}),
      sample("flat", {2, 3, 8}, {2, 5, 4}, flat),
      sample("window", q, k, {{"left_window_size", 1}, {"right_window_size", 1}}),
      sample("f64_softmax", q, k, {{"softmax_precision", static_cast<int>(DType::f64)}}),
      sample("no_batch", {0, 2, 3, 4}, {0, 2, 5, 4}, {{"is_causal", 1}}),
      sample("tokens", {1, 3, 33, 16}, {1, 3, 33, 16}, {{"is_causal", 1}}),
  };
  for (const int mode : {0, 1, 2, 3}) {
    Sample shown = sample("scores_mode_" + std::to_string(mode), q, k,
                          {{"qk_matmul_output_mode", mode}, {"softcap", 0.5F}});
    shown.inputs.push_back({{3, 5}});
    shown.outputs = 4;
    samples.push_back(std::move(shown));
  }
  add_mask_samples(samples);
  add_cache_samples(samples);
  return samples;
}

}  // namespace graft
