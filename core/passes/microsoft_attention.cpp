// Attention of com.microsoft, and what stands round it.
#include "core/passes/microsoft_attention_internal.h"

#include <array>
#include <cmath>

namespace graft::passes {
namespace {

/// [B,S,H] as [B,heads,S,H/heads].
Expr in_heads(const MicrosoftCall& c, const Expr& x, std::int64_t heads) {
  return transpose(c.reshaped(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

/// What is added to scores [B,heads,S,T] for a mask: lengths [B], flags [B,T] or flags [B,S,T].
/// `keys`: [B,heads,T,*].
Expr added_for(const MicrosoftCall& c, const Expr& mask, const Expr& keys) {
  Expr kept;
  const int rank = c.rank(mask);
  if (rank == 1) {
    const Expr lengths = unsqueeze(cast(mask, DType::i64), {1});
    kept = less(c.range_along(keys, 2), lengths);
    const Dim& count = (*mask.value()->shape())[0];
    const Dim& batch = (*keys.value()->shape())[0];
    if (count.is_known() && batch.is_known() && count.value() != batch.value()) {
      c.unsupported("its mask has ", count, " numbers for a batch of ", batch,
                    "; there is a form for one length a sample");
    }
  } else if (rank == 2 || rank == 3) {
    kept = greater(mask, constant_like(mask, 0.0));
  } else {
    c.unsupported("its mask is ", mask.value()->type(), ", wanted rank 1, 2 or 3");
  }
  const Expr added = where(kept, constant_like(keys, 0.0),
                           constant_like(keys, c.number("mask_filter_value", -10000.0F)));
  return rank == 3 ? unsqueeze(added, {1}) : unsqueeze(added, {1, 2});
}

/// Lets nothing flow from what comes later.
Expr without_later(const MicrosoftCall& c, const Expr& scores) {
  constexpr double kNever = -3e4;  // in f16 too; far below what is left out by other masks
  const Expr rows = unsqueeze(c.range_along(scores, 2), {1});
  const Expr later = greater(c.range_along(scores, 3), rows);
  return scores + where(later, constant_like(scores, kNever), constant_like(scores, 0.0));
}

struct Heads {
  Expr q, k, v;
  /// The size of a head of q.
  double size;
};

/// softmax(q k^T scale + mask) v as [B,S,H].
Expr attend(const MicrosoftCall& c, const Heads& heads, const Expr& mask, const Expr& bias) {
  const double given = c.number("scale", 0.0F);
  const double scale = given == 0.0 ? 1.0 / std::sqrt(heads.size) : given;
  Expr scores = matmul(heads.q, transpose(heads.k, {0, 1, 3, 2})) * scale;
  if (mask) scores = scores + added_for(c, mask, heads.k);
  if (bias) scores = scores + bias;
  if (c.integer("unidirectional") != 0) scores = without_later(c, scores);
  const Expr y = matmul(call("Softmax", {scores}, {{"axis", -1}}), heads.v);
  return c.reshaped(transpose(y, {0, 2, 1, 3}), {0, 0, -1});
}

std::int64_t head_count(const MicrosoftCall& c) {
  constexpr std::int64_t kMost = INT32_MAX;  // multiples of it are added
  const std::int64_t heads = c.integer("num_heads");
  if (heads < 1 || heads > kMost) {
    fail(ErrorKind::model, c.node().label(), ": num_heads is ", heads, ", wanted 1 to ", kMost);
  }
  return heads;
}

/// Three parts of the last axis.
std::vector<Expr> split(const MicrosoftCall& c, const Expr& x,
                        const std::vector<std::int64_t>& sizes) {
  return call_multi("Split", "", {x, c.ints(sizes)}, 3, {{"axis", -1}});
}

}  // namespace

/// Inputs: x, weight and bias of q, k and v together, mask, past, what is added to the scores.
Outputs expand_attention(const MicrosoftCall& c) {
  c.refuse_input(4, "past");
  c.refuse_input(6, "past_sequence_length");
  c.require("do_rotary", 0);
  const std::int64_t heads = head_count(c);
  const Expr weight = c.required(1);
  std::vector<std::int64_t> sizes = c.node().attributes.get_ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, c.dim(weight, 1) / 3);
  if (sizes.size() != 3) {
    fail(ErrorKind::model, c.node().label(), ": qkv_hidden_sizes has ", sizes.size(),
         " numbers, wanted 3");
  }
  Expr x = matmul(c.required(0), weight);
  if (c.has(2)) x = x + c.input(2);
  const std::vector<Expr> parts = split(c, x, sizes);
  const Heads all{in_heads(c, parts[0], heads), in_heads(c, parts[1], heads),
                  in_heads(c, parts[2], heads),
                  static_cast<double>(sizes[0]) / static_cast<double>(heads)};
  const Expr y = attend(c, all, c.input(3), c.input(5));
  if (c.node().output(1) == nullptr) return {y};
  return {y, call("Concat", {unsqueeze(all.k, {0}), unsqueeze(all.v, {0})}, {{"axis", 0}})};
}

/// Inputs: q, k, v, bias of the three together, mask of keys, what is added to the scores.
Outputs expand_multi_head_attention(const MicrosoftCall& c) {
  if (!c.has(1) || !c.has(2)) c.unsupported("no form for q, k and v in one input");
  for (int i = 6; i < c.node().input_count(); ++i) c.refuse_input(i, "past or cache");
  const std::int64_t heads = head_count(c);
  std::array<Expr, 3> x{c.required(0), c.required(1), c.required(2)};
  const std::int64_t hidden = c.dim(x[0], -1);
  if (c.has(3)) {
    const std::int64_t values = c.dim(c.input(3), 0) - checked_multiply(2, hidden);
    const std::vector<Expr> biases = split(c, c.input(3), {hidden, hidden, values});
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (c.rank(x[i]) != 3) c.unsupported("no form for a bias of q, k and v that are in heads");
      x[i] = x[i] + biases[i];
    }
  }
  for (Expr& part : x) {
    if (c.rank(part) == 3) part = in_heads(c, part, heads);
  }
  const Heads all{x[0], x[1], x[2], static_cast<double>(hidden) / static_cast<double>(heads)};
  return {attend(c, all, c.input(4), c.input(5)), all.k, all.v};
}

namespace {

/// q, k and v, or what one input holds of the three.
std::array<Expr, 3> parts_of(const MicrosoftCall& c, std::int64_t heads, std::int64_t groups) {
  const Expr first = c.required(0);
  if (c.has(1) != c.has(2)) fail(ErrorKind::model, c.node().label(), ": key or value is missing");
  if (c.has(1)) return {first, c.input(1), c.input(2)};
  const std::int64_t size = c.dim(first, -1) / (heads + 2 * groups);
  const std::vector<Expr> parts = split(c, first, {heads * size, groups * size, groups * size});
  return {parts[0], parts[1], parts[2]};
}

/// x [B,heads,S,D], turned by its places: those given, or those behind the past.
Expr rotated(const MicrosoftCall& c, const Expr& x, const Expr& past) {
  Expr places = c.has(9) ? c.input(9) : unsqueeze(c.range_along(x, 2), {0});
  if (!c.has(9) && past) places = places + call("Shape", {past}, {{"start", 2}, {"end", 3}});
  const Expr shape =
      call("Concat", {call("Shape", {x}, {{"start", 0}, {"end", 1}}), c.ints({1})}, {{"axis", 0}});
  return call("RotaryEmbedding", {x, c.required(7), c.required(8), call("Expand", {places, shape})},
              {{"interleaved", c.integer("rotary_interleaved")}});
}

void check_group_query(const MicrosoftCall& c, std::int64_t heads, std::int64_t groups) {
  if (groups < 1 || heads % groups != 0) {
    fail(ErrorKind::model, c.node().label(), ": num_heads ", heads,
         " is no multiple of kv_num_heads ", groups);
  }
  if (c.has(3) != c.has(4)) {
    fail(ErrorKind::model, c.node().label(), ": past_key or past_value is missing");
  }
  c.refuse_input(11, "head_sink");
  for (int i = 12; i < c.node().input_count(); ++i) c.refuse_input(i, "a scale of the cache");
  if (c.integer("smooth_softmax", -1) > 0) c.unsupported("no form for smooth_softmax");
}

}  // namespace

/// Inputs: q, k, v, past k and v, lengths less 1, the longest, cosines, sines, places, what is
/// added to the scores. Samples are as long as each other, or end early: what the rest computes is
/// no result, and nothing before it reads it.
Outputs expand_group_query_attention(const MicrosoftCall& c) {
  const std::int64_t heads = head_count(c);
  const std::int64_t groups = c.integer("kv_num_heads");
  check_group_query(c, heads, groups);
  const std::array<Expr, 3> parts = parts_of(c, heads, groups);
  Expr q = in_heads(c, parts[0], heads);
  Expr k = in_heads(c, parts[1], groups);
  const Expr v = in_heads(c, parts[2], groups);
  if (c.integer("do_rotary") != 0) {
    q = rotated(c, q, c.input(3));
    k = rotated(c, k, c.input(3));
  }
  Attributes attributes{{"is_causal", 1}, {"softcap", c.node().attributes.get_float("softcap", 0)}};
  const float scale = c.node().attributes.get_float("scale", 0.0F);
  if (scale != 0.0F) attributes.set({"scale", scale});
  const std::int64_t window = c.integer("local_window_size", -1);
  if (window > 0) attributes.set({"left_window_size", window - 1});
  const std::vector<Expr> all = call_multi(
      "Attention", "", {q, k, v, c.input(10), c.input(3), c.input(4)}, 3, std::move(attributes));
  return {c.reshaped(transpose(all[0], {0, 2, 1, 3}), {0, 0, -1}), all[1], all[2]};
}

/// Inputs: x [B,S,H] or [B,heads,S,D], places [B,S] or the first place [1], cosines, sines.
Outputs expand_rotary_embedding(const MicrosoftCall& c) {
  c.require("is_packed_batching", 0);
  if (c.number("scale", 1.0F) != 1.0) c.unsupported("no form for a scale of its own");
  const Expr x = c.required(0);
  const Expr cosines = c.required(2);
  Expr places = c.required(1);
  const int rank = c.rank(x);
  if (c.rank(places) == 1) {
    const Expr all = places + c.range_along(x, rank == 3 ? 1 : 2);
    const Expr batch = call("Shape", {x}, {{"start", 0}, {"end", 1}});
    const Expr shape = call("Concat", {batch, c.ints({1})}, {{"axis", 0}});
    places = call("Expand", {unsqueeze(all, {0}), shape});
  }
  const std::int64_t turned = c.integer("rotary_embedding_dim");
  Attributes attributes{{"interleaved", c.integer("interleaved")},
                        {"rotary_embedding_dim", turned}};
  if (rank == 3) {
    std::int64_t heads = c.integer("num_heads");
    const std::int64_t half = c.dim(cosines, 1);
    if (half < 1) fail(ErrorKind::shape, c.node().label(), ": its table of cosines is empty");
    if (heads == 0 && turned == 0) heads = c.dim(x, 2) / 2 / half;
    attributes.set({"num_heads", heads});
  }
  return {call("RotaryEmbedding", {x, cosines, c.required(3), places}, attributes)};
}

}  // namespace graft::passes
