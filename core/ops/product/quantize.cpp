#include "core/ops/product/quantize.h"

#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/table_limit.h"

namespace graft {

std::optional<QuantizedRange> quantized_range(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return QuantizedRange{0, 255};
    case DType::i8:
      return QuantizedRange{-128, 127};
    case DType::u16:
      return QuantizedRange{0, 65535};
    case DType::i16:
      return QuantizedRange{-32768, 32767};
    case DType::u4:
      return QuantizedRange{0, 15};
    case DType::i4:
      return QuantizedRange{-8, 7};
    case DType::u2:
      return QuantizedRange{0, 3};
    case DType::i2:
      return QuantizedRange{-2, 1};
    case DType::f8e4m3fn:
      return QuantizedRange{-448, 448};
    case DType::f8e4m3fnuz:
      return QuantizedRange{-240, 240};
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return QuantizedRange{-57344, 57344};
    case DType::f4e2m1:
      return QuantizedRange{-6, 6};
    default:
      return std::nullopt;
  }
}

ScaleLayout::ScaleLayout(const Node& node, const Shape& x, const Shape& scale) {
  if (scale.size() == 1 && scale.rank() <= 1) {
    inner = x.size();
    return;
  }
  const auto refuse = [&](const auto&... why) {
    fail(ErrorKind::shape, node.label(), ": scale ", scale, " does not fit ", x, ": ", why...);
  };
  axis_index = normalize_axis(node.attributes.get_int("axis", 1), x.rank(), node.label());
  outer = x.size(0, axis_index);
  axis = x[axis_index];
  inner = x.size(axis_index + 1, x.rank());
  if (scale.rank() == 1) {
    if (scale[0] != axis)
      refuse("wanted ", axis, " scales, one for each place of axis ", axis_index);
    axis_step = 1;
    return;
  }
  block = node.attributes.get_int("block_size", 0);
  if (block < 1) refuse("wanted a block_size");
  std::vector<std::int64_t> wanted = x.dims();
  at(wanted, axis_index) = axis / block + (axis % block != 0 ? 1 : 0);
  if (scale.dims() != wanted) refuse("wanted ", Shape(wanted), " for blocks of ", block);
  outer_step = at(wanted, axis_index) * inner;
  axis_step = inner;
  inner_step = 1;
}

namespace {

void check_scale(const InferContext& context) {
  const SymShape* const x = context.shape(0);
  const SymShape* const scale = context.shape(1);
  if (x == nullptr || scale == nullptr || !x->known() || !scale->known()) return;
  const ScaleLayout layout(context.node(), *x->known(), *scale->known());
  const SymShape* const zero = context.shape(2);
  if (zero == nullptr || !zero->known() || zero->known()->size() == scale->known()->size()) return;
  context.fail(ErrorKind::shape, "the zero point is ", *zero, ", wanted the scale's shape ",
               *scale);
}

/// An element type given by a number; undefined for 0.
DType attribute_type(const InferContext& context, std::string_view name) {
  const std::int64_t number = context.attributes().get_int(name, 0);
  if (number == 0) return DType::undefined;
  if (number < 0 || number > INT32_MAX || !is_known_dtype(static_cast<int>(number))) {
    context.fail(ErrorKind::type, name, " is ", number, ", which is not an element type");
  }
  return static_cast<DType>(number);
}

void set_output(InferContext& context, DType dtype) {
  const SymShape* const shape = context.shape(0);
  context.set_output(0, dtype, shape == nullptr ? std::nullopt : std::optional(*shape));
}

void infer_quantize(InferContext& context) {
  context.input(0);
  attribute_type(context, "precision");
  check_scale(context);
  const DType asked = attribute_type(context, "output_dtype");
  DType dtype = asked;
  if (context.has_input(2)) {
    dtype = context.dtype(2);
    if (asked != DType::undefined && dtype != DType::undefined && asked != dtype) {
      context.fail(ErrorKind::type, "output_dtype is ", asked, ", the zero point ", dtype);
    }
  } else if (dtype == DType::undefined) {
    dtype = DType::u8;
  }
  if (dtype != DType::undefined && !quantized_range(dtype)) {
    context.fail(ErrorKind::unsupported, dtype, " is not a type to quantize to");
  }
  set_output(context, dtype);
}

void infer_dequantize(InferContext& context) {
  const DType from = context.input(0).dtype();
  if (from != DType::undefined && from != DType::i32 && !quantized_range(from)) {
    context.fail(ErrorKind::unsupported, from, " is not a quantized type");
  }
  context.require_same_dtype({0, 2});
  check_scale(context);
  const DType asked = attribute_type(context, "output_dtype");
  const DType dtype = asked == DType::undefined ? context.dtype(1) : asked;
  if (dtype != DType::undefined && !is_float(dtype)) {
    context.fail(ErrorKind::type, "the output would be ", dtype, ", wanted a float type");
  }
  set_output(context, dtype);
}

void infer_dynamic(InferContext& context) {
  const DType dtype = context.input(0).dtype();
  if (dtype != DType::undefined && !is_float(dtype)) {
    context.fail(ErrorKind::type, "the input is ", dtype, ", wanted a float type");
  }
  set_output(context, DType::u8);
  context.set_output(1, dtype, SymShape());
  context.set_output(2, DType::u8, SymShape());
}

/// The scale (or zero point) of each element, as floats that broadcast to x.
Expr spread(const Expr& scale, const ScaleLayout& layout, const Shape& x, DType dtype) {
  const Expr floats = scale.dtype() == dtype ? scale : cast(scale, dtype);
  if (layout.is_one()) return reshape(floats, {});
  if (!layout.is_blocked()) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
    at(dims, layout.axis_index) = layout.axis;
    return reshape(floats, Shape(std::move(dims)));
  }
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < layout.axis; ++i) blocks.push_back(i / layout.block);
  return call("Gather", {floats, constant_ints(scale.builder(), blocks)},
              {{"axis", layout.axis_index}});
}

/// (x - zero point) * scale. Behind a QuantizeLinear the result counts, for gradients, as that
/// one's input limited to the range: the straight-through estimator (Bengio et al., "Estimating or
/// Propagating Gradients Through Stochastic Neurons", 2013), as torch's FakeQuantize.
std::vector<Expr> expand_dequantize(const Node& node, Builder& builder) {
  const Expr x = builder.expr(node.input(0));
  const ScaleLayout layout(node, x.shape(), node.input(1)->known_shape());
  if (layout.is_blocked()) require_small_table(node, layout.axis);
  const DType to = node.output()->dtype();
  const DType dtype = to == DType::f64 ? DType::f64 : DType::f32;
  const Expr scale = spread(builder.expr(node.input(1)), layout, x.shape(), dtype);
  Expr zero;
  if (node.input(2) != nullptr) {
    zero = spread(builder.expr(node.input(2)), layout, x.shape(), dtype);
  }
  Expr value = cast(x, dtype);
  if (zero) value = value - zero;
  value = value * scale;
  const Node* const source = x.value()->producer();
  if (source != nullptr && source->is("QuantizeLinear") && is_float(source->input(0)->dtype())) {
    const QuantizedRange range = *quantized_range(x.dtype());
    const auto bound = [&](double end) {
      const Expr distance = constant_like(scale, end);
      return scale * (zero ? distance - zero : distance);
    };
    const Expr original = cast(builder.expr(source->input(0)), dtype);
    const Expr path = call("Min", {call("Max", {original, bound(range.low)}), bound(range.high)});
    value = call_internal("StraightThrough", {value, path});
  }
  return {to == dtype ? value : cast(value, to)};
}

std::vector<Expr> straight_through_rule(const Gradient& g) {
  return {{}, g.dy()};
}

std::vector<Expr> lower_straight_through(const Node& node, Builder& builder) {
  return {call("Identity", {builder.expr(node.input(0))})};
}

void infer_straight_through(InferContext& context) {
  context.require_same_dtype({0, 1});
  context.copy_type(0);
}

SampleInput scales(Shape shape) {
  return {.shape = std::move(shape), .low = 0.03, .high = 0.2};
}
SampleInput zeros(Shape shape, DType dtype, double low = 1, double high = 6) {
  return {.shape = std::move(shape), .low = low, .high = high, .dtype = dtype};
}

/// `x` with one scale, scales along an axis, blocks; with and without zero points.
std::vector<Sample> linear_samples(const SampleInput& like, DType dtype) {
  const auto x = [&](Shape shape) {
    SampleInput input = like;
    input.shape = std::move(shape);
    return input;
  };
  return {
      {"one", {x({3, 5}), scales({}), zeros({}, dtype)}},
      {"list_of_one", {x({3, 5}), scales({1}), zeros({1}, dtype)}},
      {"axis", {x({2, 3, 4}), scales({3}), zeros({3}, dtype)}},
      {"last_axis", {x({2, 5}), scales({5}), zeros({5}, dtype)}, {{"axis", -1}}},
      {"blocks", {x({2, 5, 3}), scales({2, 3, 3}), zeros({2, 3, 3}, dtype)}, {{"block_size", 2}}},
      {"blocks_first",
       {x({5, 3}), scales({2, 3}), zeros({2, 3}, dtype)},
       {{"axis", 0}, {"block_size", 4}}},
      {"scalar", {x({}), scales({}), zeros({}, dtype)}},
      {"empty", {x({0, 3}), scales({3}), zeros({3}, dtype)}},
      {"over_threads", {x({3, 7, 1000}), scales({7}), zeros({7}, dtype)}},
  };
}

std::vector<Sample> quantize_samples() {
  std::vector<Sample> samples = linear_samples({.low = -3.0, .high = 3.0}, DType::u8);
  const SampleInput x{.shape = {3, 5}, .low = -3.0, .high = 3.0};
  const auto to = [](DType dtype) { return Attributes{{"output_dtype", static_cast<int>(dtype)}}; };
  samples.push_back({"no_zero", {x, scales({})}});
  samples.push_back({"i16", {x, scales({}), zeros({}, DType::i16)}});
  samples.push_back({"i4", {x, scales({})}, to(DType::i4)});
  samples.push_back({"u2", {x, scales({})}, to(DType::u2)});
  for (Sample& sample : samples) sample.short_absolute = 1.0;
  // The largest steps between numbers of these types.
  samples.push_back({"f8e4m3fn", {x, scales({})}, to(DType::f8e4m3fn)});
  samples.back().short_absolute = 32.0;
  samples.push_back({"f4e2m1", {x, scales({})}, to(DType::f4e2m1)});
  samples.back().short_absolute = 2.0;
  return samples;
}

std::vector<Sample> dequantize_samples() {
  std::vector<Sample> samples =
      linear_samples({.low = -100, .high = 100, .dtype = DType::i8}, DType::i8);
  const SampleInput x{.shape = {3, 5}, .low = 0, .high = 1e5, .dtype = DType::i32};
  samples.push_back({"no_zero", {x, scales({})}});
  samples.push_back({"u16", {zeros({7}, DType::u16, 0, 60000), scales({})}});
  samples.push_back(
      {"to_doubles", {x, scales({})}, {{"output_dtype", static_cast<int>(DType::f64)}}});
  samples.push_back({"no_columns",
                     {{.shape = {5, 0}, .dtype = DType::i8}, scales({2, 0})},
                     {{"axis", 0}, {"block_size", 4}}});
  return samples;
}

std::vector<Sample> dynamic_samples() {
  const auto x = [](double low, double high) {
    return SampleInput{.shape = {3, 7}, .low = low, .high = high};
  };
  return {
      {"both_signs", {x(-1.0, 2.0)}, {}, 3}, {"positive", {x(1.0, 2.0)}, {}, 3},
      {"negative", {x(-2.0, -1.0)}, {}, 3},  {"zero", {{.shape = {2}, .values = {0, 0}}}, {}, 3},
      {"scalar", {{.shape = {}}}, {}, 3},    {"empty", {{.shape = {0}}}, {}, 3}};
}

std::vector<Sample> straight_through_samples() {
  const auto pair = [](std::string name, const Shape& shape) {
    return Sample{.name = std::move(name),
                  .inputs = {{shape}, {shape}},
                  .no_gradient_check = "its gradient is an estimate"};
  };
  return {pair("pair", {3, 5}), pair("empty", {0, 3}), pair("one_element", {1})};
}

const std::vector<Since> kSinceQuantize{
    {10}, {13, "along an axis"}, {19, "float 8"}, {21, "blocks, 4 and 16 bits"}, {23}, {24}, {25},
    {28}};

}  // namespace

/// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear; StraightThrough, which has the value of
/// its first input and the gradient of its second.
void register_quantize(OpRegistry& registry) {
  registry.add({.name = "QuantizeLinear",
                .since = kSinceQuantize,
                .inputs = {{"x"}, {"y_scale"}, {"y_zero_point", Arity::optional}},
                .outputs = {{"y"}},
                .attributes = {{"axis", AttributeType::integer},
                               {"block_size", AttributeType::integer},
                               {"output_dtype", AttributeType::integer},
                               {"precision", AttributeType::integer},
                               {"saturate", AttributeType::integer}},
                .infer = infer_quantize,
                .backward = NotDifferentiable{"it rounds; followed by DequantizeLinear it trains"},
                .samples = quantize_samples});
  registry.add({.name = "DequantizeLinear",
                .since = kSinceQuantize,
                .inputs = {{"x"}, {"x_scale"}, {"x_zero_point", Arity::optional}},
                .outputs = {{"y"}},
                .attributes = {{"axis", AttributeType::integer},
                               {"block_size", AttributeType::integer},
                               {"output_dtype", AttributeType::integer}},
                .infer = infer_dequantize,
                .backward = Decomposition{expand_dequantize},
                .samples = dequantize_samples});
  registry.add({.name = "DynamicQuantizeLinear",
                .since = {{11}},
                .inputs = {{"x"}},
                .outputs = {{"y"}, {"y_scale"}, {"y_zero_point"}},
                .infer = infer_dynamic,
                .backward = NotDifferentiable{"it rounds to 8 bits"},
                .samples = dynamic_samples});
  registry.add({.name = "StraightThrough",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"value"}, {"path"}},
                .outputs = {{"output"}},
                .infer = infer_straight_through,
                .aliases = {{0, 0, AliasKind::view}},
                .only_moves = true,
                .lower = lower_straight_through,
                .backward = straight_through_rule,
                .samples = straight_through_samples});
}

}  // namespace graft
