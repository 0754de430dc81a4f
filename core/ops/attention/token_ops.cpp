#include <numeric>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// f16 and bf16 are computed in f32.
DType compute_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

Expr slice_axis(const Expr& x, std::int64_t axis, std::int64_t first, std::int64_t last) {
  Builder& builder = x.builder();
  return call("Slice", {x, constant_ints(builder, {first}), constant_ints(builder, {last}),
                        constant_ints(builder, {axis})});
}

// RotaryEmbedding

/// The first two axes of an input are those of batch and length of x, [B,H,S,D] or [B,S,H*D].
void check_positions(const InferContext& context, int input, const SymShape& x) {
  require_dim(context, input, 0, x[0]);
  require_dim(context, input, 1, x[x.rank() - 2]);
}

void infer_rotary(InferContext& context) {
  context.require_rank(0, 3, 4);
  context.require_rank(3, 2, 2);
  context.require_same_dtype({0, 1, 2});
  const bool by_position = context.has_input(3);
  if (by_position) require_index_type(context, 3);
  for (const int cache : {1, 2}) {
    context.require_rank(cache, by_position ? 2 : 3, by_position ? 2 : 3);
  }
  context.copy_type(0);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return;
  if (by_position) check_positions(context, 3, *x);
  for (const int cache : {1, 2}) {
    if (!by_position) check_positions(context, cache, *x);
  }
  const std::int64_t heads = context.attributes().get_int("num_heads", 0);
  if (x->rank() == 3 && heads < 1) {
    context.fail(ErrorKind::model, "num_heads is ", heads, ", wanted 1 or more for rank 3");
  }
  const Dim& last = (*x)[x->rank() - 1];
  if (!last.is_known()) return;
  const std::int64_t size = x->rank() == 3 ? last.value() / heads : last.value();
  if (x->rank() == 3 && last.value() % heads != 0) {
    context.fail(ErrorKind::shape, last, " elements are no multiple of ", heads, " heads");
  }
  const std::int64_t given = context.attributes().get_int("rotary_embedding_dim", 0);
  const std::int64_t turned = given == 0 ? size : given;
  if (turned < 0 || turned > size || turned % 2 != 0) {
    context.fail(ErrorKind::shape, "rotary_embedding_dim is ", turned, ", wanted an even number",
                 " up to the head size ", size);
  }
  for (const int cache : {1, 2}) {
    const SymShape* const shape = context.shape(cache);
    if (shape == nullptr) continue;
    const Dim& half = (*shape)[shape->rank() - 1];
    if (half.is_known() && half.value() != turned / 2) {
      context.fail(ErrorKind::shape, "cache '", context.input(cache).name(), "' is ", *shape,
                   ", wanted ", turned / 2, " columns");
    }
  }
}

/// The two halves of each vector, or its even and odd elements.
std::pair<Expr, Expr> halves(const Expr& x, bool interleaved) {
  const int last = x.rank() - 1;
  const std::int64_t half = x.shape()[last] / 2;
  if (!interleaved) return {slice_axis(x, last, 0, half), slice_axis(x, last, half, 2 * half)};
  std::vector<std::int64_t> dims = x.shape().dims();
  dims.back() = half;
  const Shape part(dims);
  dims.push_back(2);
  const Expr pairs = reshape(x, Shape(dims));
  return {reshape(slice_axis(pairs, last + 1, 0, 1), part),
          reshape(slice_axis(pairs, last + 1, 1, 2), part)};
}

Expr join(const Expr& a, const Expr& b, bool interleaved, const Shape& shape) {
  if (!interleaved) return call("Concat", {a, b}, {{"axis", -1}});
  return reshape(call("Concat", {unsqueeze(a, {-1}), unsqueeze(b, {-1})}, {{"axis", -1}}), shape);
}

/// Pairs (a, b) of each vector turn by the angle of their position: (a cos - b sin, a sin + b cos).
std::vector<Expr> expand_rotary(const Node& node, Builder& builder) {
  const Value& input = *node.input(0);
  const DType type = compute_type(input.dtype());
  const Shape given = input.known_shape();
  const bool is_flat = given.rank() == 3;
  Expr x = cast(builder.expr(node.input(0)), type);
  if (is_flat) {
    const std::int64_t heads = node.attributes.get_int("num_heads", 1);
    x = reshape(x, {given[0], given[1], heads, given[2] / heads});
  }
  const std::int64_t size = x.shape()[3];
  const std::int64_t dim = node.attributes.get_int("rotary_embedding_dim", 0);
  const std::int64_t turned = dim == 0 ? size : dim;
  const auto angles = [&](int cache) {
    Expr table = cast(builder.expr(node.input(cache)), type);
    if (node.input(3) != nullptr) table = call("Gather", {table, builder.expr(node.input(3))});
    return unsqueeze(table, {is_flat ? 2 : 1});
  };
  const Expr cosine = angles(1);
  const Expr sine = angles(2);
  const bool interleaved = node.attributes.get_int("interleaved", 0) != 0;
  const Expr moving = turned == size ? x : slice_axis(x, 3, 0, turned);
  const auto [a, b] = halves(moving, interleaved);
  Expr y = join(a * cosine - b * sine, a * sine + b * cosine, interleaved, moving.shape());
  if (turned < size) y = call("Concat", {y, slice_axis(x, 3, turned, size)}, {{"axis", -1}});
  return {cast(reshape(y, given), input.dtype())};
}

// TensorScatter

void infer_tensor_scatter(InferContext& context) {
  context.require_same_dtype({0, 1});
  context.require_rank(2, 1, 1);
  const std::string mode = context.attributes().get_string("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    context.fail(ErrorKind::model, "mode is '", mode, "', wanted linear or circular");
  }
  context.copy_type(0);
  const SymShape* const cache = context.shape(0);
  if (cache == nullptr) return;
  const int along = normalize_axis(context.attributes().get_int("axis", -2), cache->rank(),
                                   context.node().label());
  if (along == 0) context.fail(ErrorKind::shape, "axis is that of the batch");
  require_dim(context, 2, 0, (*cache)[0]);
  const SymShape* const update = context.shape(1);
  if (update == nullptr) return;
  context.require_rank(1, cache->rank(), cache->rank());
  for (int axis = 0; axis < cache->rank(); ++axis) {
    const Dim& a = (*cache)[axis];
    const Dim& b = (*update)[axis];
    if (!a.is_known() || !b.is_known()) continue;
    if (axis == along ? b.value() > a.value() : a.value() != b.value()) {
      context.fail(ErrorKind::shape, "the update is ", *update, ", which does not fit ", *cache);
    }
  }
}

/// ScatterElements along the axis, from the index of each sample on.
std::vector<Expr> expand_tensor_scatter(const Node& node, Builder& builder) {
  const Expr cache = builder.expr(node.input(0));
  const Expr update = builder.expr(node.input(1));
  const Shape shape = update.shape();
  const int axis = normalize_axis(node.attributes.get_int("axis", -2), shape.rank(), node.label());
  if (shape.size() == 0) return {call("Identity", {cache})};
  require_small_table(node, shape[axis]);
  std::vector<std::int64_t> steps(static_cast<std::size_t>(shape[axis]));
  std::iota(steps.begin(), steps.end(), 0);
  std::vector<std::int64_t> line(static_cast<std::size_t>(shape.rank()), 1);
  line[static_cast<std::size_t>(axis)] = shape[axis];
  Expr at = reshape(constant_ints(builder, steps), Shape(line));
  if (node.input(2) != nullptr) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(shape.rank()), 1);
    samples[0] = shape[0];
    at = at + reshape(cast(builder.expr(node.input(2)), DType::i64), Shape(samples));
  }
  if (node.attributes.get_string("mode", "linear") == "circular") {
    at = call("Mod", {at, constant_like(at, static_cast<double>(cache.shape()[axis]))});
  }
  return {call("ScatterElements", {cache, expand(at, shape), update}, {{"axis", axis}})};
}

// SwiGLU

void infer_swiglu(InferContext& context) {
  context.require_same_dtype({0, 1});
  const SymShape* const a = context.shape(0);
  const SymShape* const b = context.shape(1);
  if (a != nullptr && b != nullptr && a->known() && b->known() && !(*a == *b)) {
    context.fail(ErrorKind::shape, "inputs are ", *a, " and ", *b, ", wanted one shape");
  }
  context.copy_type(0);
}

std::vector<Expr> expand_swiglu(const Node& node, Builder& builder) {
  const Expr a = builder.expr(node.input(0));
  const DType type = compute_type(a.dtype());
  const Expr gate =
      call("Swish", {cast(a, type)}, {{"alpha", node.attributes.get_float("alpha", 1.0F)}});
  return {cast(gate * cast(builder.expr(node.input(1)), type), a.dtype())};
}

// CausalConvWithState

void infer_causal_conv(InferContext& context) {
  context.require_same_dtype({0, 1, 2, 3});
  for (const int input : {0, 1, 3}) context.require_rank(input, 3, 3);
  context.require_rank(2, 1, 1);
  const std::string activation = context.attributes().get_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    context.fail(ErrorKind::model, "activation is '", activation, "', wanted none, silu or swish");
  }
  context.copy_type(0);
  const SymShape* const x = context.shape(0);
  const SymShape* const w = context.shape(1);
  const Dim taps = w == nullptr ? Dim() : (*w)[2];
  if (taps.is_known() && taps.value() < 1) context.fail(ErrorKind::shape, "weight is ", *w);
  const Dim kept = taps.is_known() ? Dim(taps.value() - 1) : Dim();
  require_dim(context, 1, 1, 1);
  require_dim(context, 3, 2, kept);
  if (x != nullptr) {
    for (const int input : {1, 2}) require_dim(context, input, 0, (*x)[1]);
    for (const int axis : {0, 1}) require_dim(context, 3, axis, (*x)[axis]);
  }
  if (context.node().output(1) == nullptr) return;
  if (x == nullptr) return context.set_output(1, context.dtype(0));
  context.set_output(1, context.dtype(0), SymShape{(*x)[0], (*x)[1], kept});
}

/// A depthwise convolution that sees the past: the state, or zeros, stands before the input.
std::vector<Expr> expand_causal_conv(const Node& node, Builder& builder) {
  const DType out = node.input(0)->dtype();
  const DType type = compute_type(out);
  const auto input = [&](int i) { return cast(builder.expr(node.input(i)), type); };
  const Expr x = input(0);
  const Shape shape = x.shape();
  const std::int64_t kept = node.input(1)->known_shape()[2] - 1;
  Expr padded = x;
  if (kept > 0) {
    const Expr past = node.input(3) != nullptr
                          ? input(3)
                          : expand(constant_like(x, 0.0), {shape[0], shape[1], kept});
    padded = call("Concat", {past, x}, {{"axis", 2}});
  }
  std::vector<Expr> operands{padded, input(1)};
  if (node.input(2) != nullptr) operands.push_back(input(2));
  Expr y = call("Conv", operands, {{"group", shape[1]}});
  if (node.attributes.get_string("activation", "none") != "none") y = call("Swish", {y});
  const Expr state = node.output(1) == nullptr
                         ? Expr()
                         : cast(slice_axis(padded, 2, shape[2], shape[2] + kept), out);
  return {cast(y, out), state};
}

std::vector<Sample> rotary_samples() {
  const SampleInput ids{
      .shape = {2, 3}, .values = {0, 4, 2, 1, 1, 3}, .dtype = DType::i64, .is_constant = false};
  const Attributes turned{{"interleaved", 1}, {"rotary_embedding_dim", 4}};
  return {
      {"plain", {{{2, 2, 3, 8}}, {{5, 4}}, {{5, 4}}, ids}},
      {"flat", {{{2, 3, 16}}, {{5, 4}}, {{5, 4}}, ids}, {{"num_heads", 2}}},
      {"interleaved", {{{2, 2, 3, 8}}, {{2, 3, 4}}, {{2, 3, 4}}}, {{"interleaved", 1}}},
      {"partly", {{{2, 2, 3, 8}}, {{2, 3, 2}}, {{2, 3, 2}}}, {{"rotary_embedding_dim", 4}}},
      {"partly_interleaved", {{{2, 2, 3, 8}}, {{2, 3, 2}}, {{2, 3, 2}}}, turned},
      {"no_samples", {{{0, 2, 3, 4}}, {{0, 3, 2}}, {{0, 3, 2}}}},
      {"one_pair", {{{1, 1, 1, 2}}, {{1, 1, 1}}, {{1, 1, 1}}}},
  };
}

std::vector<Sample> tensor_scatter_samples() {
  const SampleInput at{.shape = {2}, .values = {1, 3}, .dtype = DType::i64};
  const SampleInput first{.shape = {2}, .values = {0, 2}, .dtype = DType::i64};
  return {
      {"linear", {{{2, 3, 4, 5}}, {{2, 3, 2, 5}}, first}},
      {"circular", {{{2, 3, 4, 5}}, {{2, 3, 2, 5}}, at}, {{"mode", "circular"}}},
      {"from_the_start", {{{2, 4, 5}}, {{2, 3, 5}}}},
      {"other_axis", {{{2, 4, 5}}, {{2, 4, 2}}, first}, {{"axis", -1}}},
      {"nothing", {{{2, 4, 5}}, {{2, 0, 5}}, first}},
      {"one_sample",
       {{{1, 4, 1}}, {{1, 1, 1}}, {.shape = {1}, .values = {2}, .dtype = DType::i64}}},
  };
}

std::vector<Sample> swiglu_samples() {
  return {
      {"plain", {{{3, 5}, -3.0, 3.0}, {{3, 5}}}},
      {"alpha", {{{3, 5}, -3.0, 3.0}, {{3, 5}}}, {{"alpha", 1.7F}}},
      {"empty", {{{0, 5}}, {{0, 5}}}},
      {"one_row", {{{1, 5}}, {{1, 5}}}},
  };
}

std::vector<Sample> causal_conv_samples() {
  const SampleInput x{{2, 3, 7}};
  const SampleInput w{{3, 1, 4}};
  return {
      {"plain", {x, w}, {}, 2},
      {"bias_and_past", {x, w, {{3}}, {{2, 3, 3}}}, {}, 2},
      {"silu", {x, w, absent(), {{2, 3, 3}}}, {{"activation", "silu"}}},
      {"swish", {{{1, 3, 5}}, w}, {{"activation", "swish"}}},
      {"short_input", {{{2, 3, 2}}, w}, {}, 2},
      {"one_tap", {x, {{3, 1, 1}}}, {}, 2},
      {"no_samples", {{{0, 3, 7}}, w}, {}, 2},
  };
}

}  // namespace

/// Ops of token models, written in other ops: RotaryEmbedding (Su et al. 2021), TensorScatter,
/// SwiGLU (Shazeer 2020), CausalConvWithState.
void register_token_ops(OpRegistry& registry) {
  registry.add({.name = "RotaryEmbedding",
                .since = {{23}},
                .inputs = {{"X"}, {"cos_cache"}, {"sin_cache"}, {"position_ids", Arity::optional}},
                .outputs = {{"Y"}},
                .attributes = {{"interleaved", AttributeType::integer},
                               {"num_heads", AttributeType::integer},
                               {"rotary_embedding_dim", AttributeType::integer}},
                .infer = infer_rotary,
                .backward = Decomposition{expand_rotary},
                .samples = rotary_samples});
  registry.add({.name = "TensorScatter",
                .since = {{24}},
                .inputs = {{"past_cache"}, {"update"}, {"write_indices", Arity::optional}},
                .outputs = {{"present_cache"}},
                .attributes = {{"axis", AttributeType::integer}, {"mode", AttributeType::text}},
                .infer = infer_tensor_scatter,
                .backward = Decomposition{expand_tensor_scatter},
                .samples = tensor_scatter_samples});
  registry.add({.name = "SwiGLU",
                .since = {{28}},
                .inputs = {{"A"}, {"B"}},
                .outputs = {{"Y"}},
                .attributes = {{"alpha", AttributeType::number}},
                .infer = infer_swiglu,
                .backward = Decomposition{expand_swiglu},
                .samples = swiglu_samples});
  registry.add({.name = "CausalConvWithState",
                .since = {{27}},
                .inputs = {{"input"},
                           {"weight"},
                           {"bias", Arity::optional},
                           {"past_state", Arity::optional}},
                .outputs = {{"output"}, {"present_state", Arity::optional}},
                .attributes = {{"activation", AttributeType::text}},
                .infer = infer_causal_conv,
                .weights = {1, 2},
                .backward = Decomposition{expand_causal_conv},
                .samples = causal_conv_samples});
}

}  // namespace graft
