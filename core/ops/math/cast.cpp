#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

void set_cast_output(InferContext& context, DType dtype) {
  const SymShape* const shape = context.shape(0);
  context.set_output(0, dtype, shape == nullptr ? std::nullopt : std::optional(*shape));
}

DType target_type(const InferContext& context) {
  const std::int64_t to = context.attributes().get_int("to", 0);
  if (to <= 0 || to > INT32_MAX || !is_known_dtype(static_cast<int>(to))) {
    context.fail(ErrorKind::type, "to is ", to, ", which is not an element type");
  }
  return static_cast<DType>(to);
}

void check_rounding(const InferContext& context) {
  const std::string mode = context.attributes().get_string("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") {
    context.fail(ErrorKind::model, "round_mode is '", mode, "', wanted 'up', 'down' or 'nearest'");
  }
}

void infer_cast(InferContext& context) {
  check_rounding(context);
  context.input(0);
  set_cast_output(context, target_type(context));
}

/// The same bits as another type.
void infer_bit_cast(InferContext& context) {
  const DType from = context.input(0).dtype();
  const DType to = target_type(context);
  if (from != DType::undefined && (bits_of(from) != bits_of(to) || bits_of(to) == 0)) {
    context.fail(ErrorKind::type, "elements of ", from, " are not as wide as those of ", to);
  }
  if (to == DType::boolean && from != DType::boolean && from != DType::undefined) {
    context.fail(ErrorKind::unsupported, "bits of ", from, " as bool, which is 0 or 1: use Cast");
  }
  set_cast_output(context, to);
}

void infer_cast_like(InferContext& context) {
  check_rounding(context);
  context.input(0);
  set_cast_output(context, context.dtype(1));
}

/// Casts back; what came from or went through integers has no gradient.
std::vector<Expr> cast_rule(const Gradient& g) {
  if (!is_float(g.x().dtype()) || !is_float(g.y().dtype())) return {};
  return {cast(g.dy(), g.x().dtype())};
}

std::vector<Sample> cast_samples() {
  const auto cast_to = [](DType dtype) { return Attributes{{"to", static_cast<int>(dtype)}}; };
  const SampleInput floats{{3, 5}, -9.0, 9.0};
  const auto beyond = [&](DType dtype, Attribute more) {
    Attributes attributes = cast_to(dtype);
    attributes.set(std::move(more));
    return attributes;
  };
  const SampleInput whole{.shape = {3, 5}, .low = -9, .high = 9, .dtype = DType::i64};
  const SampleInput flags{.shape = {2}, .values = {0, 1}, .dtype = DType::boolean};
  const std::string stepped = "the result moves in steps";
  const auto from_floats = [&](std::string name, DType dtype) {
    return Sample{.name = std::move(name),
                  .inputs = {floats},
                  .attributes = cast_to(dtype),
                  .no_gradient_check = stepped};
  };
  return {
      {"f64", {floats}, cast_to(DType::f64)},
      from_floats("f32", DType::f32),
      from_floats("f16", DType::f16),
      from_floats("bf16", DType::bf16),
      from_floats("i64", DType::i64),
      from_floats("i8", DType::i8),
      from_floats("flags", DType::boolean),
      {"integers_to_floats", {whole}, cast_to(DType::f32)},
      {"integers_to_bytes", {whole}, cast_to(DType::u8)},
      {"flags_to_integers", {flags}, cast_to(DType::i32)},
      {"flags_to_floats", {flags}, cast_to(DType::f32)},
      {"empty", {{{0, 3}}}, cast_to(DType::f64)},
      from_floats("f8e4m3fn", DType::f8e4m3fn),
      from_floats("f8e5m2fnuz", DType::f8e5m2fnuz),
      from_floats("f8e8m0", DType::f8e8m0),
      from_floats("f4e2m1", DType::f4e2m1),
      from_floats("i4", DType::i4),
      from_floats("u2", DType::u2),
      {"integers_to_i2", {whole}, cast_to(DType::i2)},
      {"integers_to_f8e5m2", {whole}, cast_to(DType::f8e5m2)},
      {"over_threads", {{{3, 20000}}}, cast_to(DType::f64)},
      {"one_element", {{{1}}}, cast_to(DType::f64)},
      {"beyond_f8", {{{9}, -900.0, 900.0}}, beyond(DType::f8e4m3fn, {"saturate", 0}), 1, stepped},
      {"f8e8m0_up", {floats}, beyond(DType::f8e8m0, {"round_mode", "up"}), 1, stepped},
      {"f8e8m0_down", {floats}, beyond(DType::f8e8m0, {"round_mode", "down"}), 1, stepped},
      {"f8e8m0_nearest", {floats}, beyond(DType::f8e8m0, {"round_mode", "nearest"}), 1, stepped},
  };
}

std::vector<Sample> cast_like_samples() {
  const SampleInput whole{.shape = {1}, .values = {0}, .dtype = DType::i32};
  const std::string stepped = "the result moves in steps";
  return {
      {.name = "to_integers", .inputs = {{{2, 3}, -9.0, 9.0}, whole}, .no_gradient_check = stepped},
      {"to_doubles", {{{2, 3}}, {.shape = {}, .dtype = DType::f64}}},
      {"empty", {{{0, 3}}, {.shape = {}, .dtype = DType::f64}}},
      {"one_element", {{{1}}, {.shape = {0}, .dtype = DType::f64}}},
  };
}

std::vector<Sample> bit_cast_samples() {
  const auto cast_to = [](DType dtype) { return Attributes{{"to", static_cast<int>(dtype)}}; };
  return {
      {"i64_to_u64", {{.shape = {3, 2}, .dtype = DType::i64}}, cast_to(DType::u64)},
      {"i32_to_f32", {{.shape = {5}, .high = 1e9, .dtype = DType::i32}}, cast_to(DType::f32)},
      {"empty", {{.shape = {0, 2}, .dtype = DType::u8}}, cast_to(DType::i8)},
  };
}

}  // namespace

/// Cast and CastLike between all of AllTypes and the types of at most 8 bits; BitCast.
void register_cast(OpRegistry& registry) {
  const std::vector<AttributeDef> rounding{{"round_mode", AttributeType::text},
                                           {"saturate", AttributeType::integer}};
  std::vector<AttributeDef> attributes = rounding;
  attributes.push_back({"to", AttributeType::integer, true});
  registry.add({.name = "Cast",
                .since = {{6, "to is a number"}, {9}, {13}, {19}, {21}, {23}, {24}, {25}, {28}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = attributes,
                .infer = infer_cast,
                .layout = kElementwise,
                .only_moves = true,
                .backward = cast_rule,
                .samples = cast_samples});
  registry.add({.name = "CastLike",
                .since = {{15}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"input"}, {"target_type"}},
                .outputs = {{"output"}},
                .attributes = rounding,
                .infer = infer_cast_like,
                .only_moves = true,
                .backward = cast_rule,
                .samples = cast_like_samples});
  registry.add({.name = "BitCast",
                .since = {{26}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"to", AttributeType::integer, true}},
                .infer = infer_bit_cast,
                .aliases = {{0, 0, AliasKind::view}},
                .backward = NotDifferentiable{"bits of a number have no derivative"},
                .samples = bit_cast_samples});
}

}  // namespace graft
