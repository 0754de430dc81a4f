#include <algorithm>
#include <cmath>

#include "core/ops/math/constant.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

template <class T>
Tensor list_tensor(const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  if constexpr (std::is_same_v<T, std::string>) {
    return Tensor::from_strings(shape, values);
  } else {
    return Tensor::from(shape, values);
  }
}

/// The attribute's value as a tensor. Throws Error{type} when it is of another type.
Tensor tensor_of(const Node& node, const std::string& name) {
  const Attributes& a = node.attributes;
  if (name == "value") return a.get_tensor(name);
  if (name == "value_int") return Tensor::scalar(a.get_int(name, 0));
  if (name == "value_ints") return list_tensor(a.get_ints(name));
  if (name == "value_float") return Tensor::scalar(a.get_float(name, 0));
  if (name == "value_floats") return list_tensor(a.get_floats(name));
  if (name == "value_string") return Tensor::from_strings(Shape{}, {a.get_string(name, "")});
  if (name == "sparse_value") {
    fail(ErrorKind::unsupported, node.label(), ": sparse tensors are not supported");
  }
  const auto* const strings =
      std::get_if<std::vector<std::string>>(&a.find("value_strings")->value);
  if (strings == nullptr) fail(ErrorKind::type, node.label(), ": value_strings are not strings");
  return list_tensor(*strings);
}

}  // namespace

Tensor constant_value(const Node& node) {
  std::string found;
  for (const char* name : {"value", "value_int", "value_ints", "value_float", "value_floats",
                           "value_string", "value_strings", "sparse_value"}) {
    if (!node.attributes.has(name)) continue;
    if (!found.empty()) fail(ErrorKind::model, node.label(), ": has both ", found, " and ", name);
    found = name;
  }
  if (found.empty()) fail(ErrorKind::model, node.label(), ": has no value");
  return tensor_of(node, found);
}

Tensor fill_value(const Node& node) {
  if (!node.attributes.has("value")) return Tensor::scalar(0.0F);
  const Tensor value = node.attributes.get_tensor("value");
  if (!value.defined() || value.size() != 1) {
    fail(ErrorKind::model, node.label(), ": value is ", value, ", wanted one element");
  }
  return value;
}

DimRange shape_range(const Node& node, int rank) {
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at = std::max<std::int64_t>(at, -rank) + rank;
    return static_cast<int>(std::min<std::int64_t>(at, rank));
  };
  const int first = clamp(node.attributes.get_int("start", 0));
  const int last = clamp(node.attributes.get_int("end", rank));
  return {first, std::max(first, last)};
}

namespace {

constexpr NotDifferentiable kNoInput{"it has no float input"};
constexpr NotDifferentiable kOnlyShape{"it depends on the shape of its input, not on its elements"};

void infer_constant(InferContext& context) {
  const Tensor value = constant_value(context.node());
  context.set_output(0, value.dtype(), value.shape());
}

/// A constant is an initializer from then on.
void upgrade_constant(Node& node, std::int64_t, Builder& builder) {
  Graph& graph = builder.graph();
  const Tensor value = constant_value(node);
  const std::string name = node.output()->name();
  graph.rename(node.output(), graph.unique_name(name + "_node"));
  Value* const initializer = graph.add_initializer(name, value);
  initializer->role = node.output()->role;
  graph.replace_all_uses(node.output(), initializer);
}

void infer_constant_of_shape(InferContext& context) {
  const DType dtype = fill_value(context.node()).dtype();
  if (const auto dims = known_ints(context, 0, "")) {
    return context.set_output(0, dtype, Shape(*dims));
  }
  const auto rank = list_length(context, 0);
  if (!rank) return context.set_output(0, dtype);
  context.set_output(0, dtype, unknown_dims(*rank));
}

void infer_shape(InferContext& context) {
  context.input(0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DType::i64, unknown_dims(1));
  const DimRange range = shape_range(context.node(), shape->rank());
  context.set_output(0, DType::i64, SymShape{Dim(range.last - range.first)});
}

void infer_size(InferContext& context) {
  context.set_output(0, DType::i64, SymShape{});
}

std::int64_t integer_range_length(const InferContext& context, std::int64_t start,
                                  std::int64_t limit, std::int64_t delta) {
  if (delta == 0) context.fail(ErrorKind::shape, "delta is 0");
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(limit, start, &distance) || distance == INT64_MIN) {
    context.fail(ErrorKind::shape, "the range from ", start, " to ", limit, " is too long");
  }
  return distance / delta + (distance % delta == 0 ? 0 : 1);
}

/// Number of elements of a Range; nullopt when one of its inputs is not known.
std::optional<std::int64_t> range_length(const InferContext& context) {
  std::vector<Tensor> inputs;
  for (const int i : {0, 1, 2}) {
    inputs.push_back(context.constant(i));
    if (!inputs.back().defined()) return std::nullopt;
    if (inputs.back().size() != 1) {
      context.fail(ErrorKind::shape, "wanted scalars, found ", inputs.back());
    }
  }
  if (inputs[0].dtype() == DType::i64) {  // doubles would round
    const auto at = [&](std::size_t i) { return to_int64(inputs[i]).front(); };
    return integer_range_length(context, at(0), at(1), at(2));
  }
  const auto at = [&](std::size_t i) { return to_double(inputs[i]).front(); };
  const double count = std::ceil((at(1) - at(0)) / at(2));
  constexpr double kMost = 9e18;
  if (!(std::abs(count) < kMost)) {
    context.fail(ErrorKind::shape, "a range from ", at(0), " to ", at(1), " by ", at(2),
                 " has no number of elements");
  }
  return static_cast<std::int64_t>(std::max(count, 0.0));
}

void infer_range(InferContext& context) {
  context.require_same_dtype({0, 1, 2});
  const auto length = range_length(context);
  context.set_output(0, context.dtype(0), SymShape{length ? Dim(*length) : Dim()});
}

void infer_eye_like(InferContext& context) {
  context.require_rank(0, 2, 2);
  const std::int64_t own = static_cast<std::int64_t>(context.dtype(0));
  const std::int64_t wanted = context.attributes().get_int("dtype", own);
  if (wanted < 0 || wanted > INT32_MAX || !is_known_dtype(static_cast<int>(wanted))) {
    context.fail(ErrorKind::type, "dtype ", wanted, " is not an element type");
  }
  const SymShape* const shape = context.shape(0);
  context.set_output(0, static_cast<DType>(wanted), shape != nullptr ? *shape : unknown_dims(2));
}

std::vector<Sample> constant_samples() {
  return {
      {"tensor", {}, {{"value", Tensor::from({2, 2}, {1.0F, 2.0F, 3.0F, 4.0F})}}},
      {"empty", {}, {{"value", Tensor::zeros(DType::i64, {0})}}},
      {"int", {}, {{"value_int", 3}}},
      {"ints", {}, {{"value_ints", std::vector<std::int64_t>{3, -4}}}},
      {"float", {}, {{"value_float", 0.5F}}},
      {"floats", {}, {{"value_floats", std::vector<float>{0.5F, -1.0F}}}},
  };
}

std::vector<Sample> constant_of_shape_samples() {
  return {
      {"zeros", {ints({2, 3})}},
      {"value", {ints({2, 3})}, {{"value", Tensor::from({1}, {2.5F})}}},
      {"integers", {ints({4})}, {{"value", Tensor::from({1}, {std::int64_t{7}})}}},
      {"flags", {ints({3})}, {{"value", Tensor::from({1}, {true})}}},
      {"scalar", {{.shape = {0}, .dtype = DType::i64, .is_constant = true}}},
      {"empty", {ints({0, 3})}},
  };
}

std::vector<Sample> shape_samples() {
  const SampleInput x{{2, 3, 4}};
  return {
      {"all", {x}},
      {"start", {x}, {{"start", 1}}},
      {"negative", {x}, {{"start", -2}, {"end", -1}}},
      {"clamped", {x}, {{"start", -9}, {"end", 9}}},
      {"nothing", {x}, {{"start", 2}, {"end", 1}}},
      {"scalar", {{{}}}},
  };
}

std::vector<Sample> size_samples() {
  return {{"plain", {{{2, 3}}}}, {"scalar", {{{}}}}, {"empty", {{{0, 3}}}}};
}

std::vector<Sample> range_samples() {
  const auto scalar = [](double value, DType dtype) {
    return SampleInput{.values = {value}, .dtype = dtype, .is_constant = true};
  };
  const auto range = [&](std::string name, double start, double limit, double delta, DType dtype) {
    return Sample{std::move(name),
                  {scalar(start, dtype), scalar(limit, dtype), scalar(delta, dtype)}};
  };
  return {
      range("up", 1, 10, 2, DType::i64),          range("down", 10, 4, -2, DType::i64),
      range("nothing", 5, 1, 1, DType::i64),      range("i32", 0, 5, 1, DType::i32),
      range("i16", -3, 4, 3, DType::i16),         range("floats", 0.5, 3.0, 0.75, DType::f32),
      range("floats_down", 3, 1, -1, DType::f32),
  };
}

std::vector<Sample> eye_like_samples() {
  const SampleInput x{{3, 4}};
  return {
      {"plain", {x}},
      {"above", {x}, {{"k", 2}}},
      {"below", {x}, {{"k", -1}}},
      {"outside", {x}, {{"k", 9}}},
      {"integers", {x}, {{"dtype", static_cast<int>(DType::i64)}}},
      {"empty", {{{0, 3}}}},
  };
}

void add_shape_readers(OpRegistry& registry) {
  registry.add({.name = "Shape",
                .since = {{1}, {13}, {15, "start and end"}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"data"}},
                .outputs = {{"shape"}},
                .attributes = {{"start", AttributeType::integer}, {"end", AttributeType::integer}},
                .infer = infer_shape,
                .reads_only_shapes = true,
                .backward = kOnlyShape,
                .samples = shape_samples});
  registry.add({.name = "Size",
                .since = {{1}, {13}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"data"}},
                .outputs = {{"size"}},
                .infer = infer_size,
                .reads_only_shapes = true,
                .backward = kOnlyShape,
                .samples = size_samples});
  registry.add({.name = "EyeLike",
                .since = {{9}, {22}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"dtype", AttributeType::integer}, {"k", AttributeType::integer}},
                .infer = infer_eye_like,
                .reads_only_shapes = true,
                .backward = kOnlyShape,
                .samples = eye_like_samples});
}

}  // namespace

/// Constant, ConstantOfShape, Shape, Size, Range, EyeLike: what does not depend on float inputs.
void register_constant(OpRegistry& registry) {
  registry.add(
      {.name = "Constant",
       .since =
           {{1}, {9}, {11, "sparse_value"}, {12, "value_*"}, {13}, {19}, {21}, {23}, {24}, {25}},
       .inputs = {},
       .outputs = {{"output"}},
       .attributes = {{"value", AttributeType::tensor},
                      {"value_int", AttributeType::integer},
                      {"value_ints", AttributeType::integers},
                      {"value_float", AttributeType::number},
                      {"value_floats", AttributeType::numbers},
                      {"value_string", AttributeType::text},
                      {"value_strings", AttributeType::texts}},
       .infer = infer_constant,
       .upgrade = upgrade_constant,
       .backward = kNoInput,
       .samples = constant_samples});
  registry.add({.name = "ConstantOfShape",
                .since = {{9}, {20}, {21}, {23}, {24}, {25}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"value", AttributeType::tensor}},
                .infer = infer_constant_of_shape,
                .backward = kNoInput,
                .samples = constant_of_shape_samples});
  registry.add({.name = "Range",
                .since = {{11}, {27, "stash_type"}},
                .inputs = {{"start"}, {"limit"}, {"delta"}},
                .outputs = {{"output"}},
                .attributes = {{"stash_type", AttributeType::integer}},
                .infer = infer_range,
                .backward = NotDifferentiable{"its length depends on its inputs"},
                .samples = range_samples});
  add_shape_readers(registry);
}

}  // namespace graft
