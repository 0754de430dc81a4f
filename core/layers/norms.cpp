#include <numeric>

#include "core/layers/kinds.h"

namespace graft::layers {
namespace {

constexpr int kMostDims = 8;

Value* constant(LayerContext& context, const std::string& name, const Value& like,
                const Shape& shape, double value) {
  return context.initializer(name, Tensor::full(like.dtype(), shape, value));
}

/// (x - mean) / sqrt(variance + epsilon) over the last `axes` axes, node by node as PyTorch exports
/// it: runtimes know the pattern.
Value* normalize(LayerContext& context, const std::string& name, Value* input, std::int64_t axes,
                 float epsilon) {
  std::vector<std::int64_t> last(static_cast<std::size_t>(axes));
  std::iota(last.begin(), last.end(), -axes);
  constexpr int kAxesAreInputs = 18;
  const auto mean_of = [&](Value* value, const std::string& suffix) {
    if (context.opset() < kAxesAreInputs) {
      return context.node("ReduceMean", {value}, name + suffix, {{"axes", last}, {"keepdims", 1}});
    }
    Value* const which = context.integers(name + suffix + ".axes", last);
    return context.node("ReduceMean", {value, which}, name + suffix, {{"keepdims", 1}});
  };
  Value* const mean = mean_of(input, ".mean");
  Value* const centered = context.node("Sub", {input, mean}, name + ".centered");
  Value* const two = context.scalar(name + ".two", *input, 2);
  Value* const squares = context.node("Pow", {centered, two}, name + ".squares");
  Value* const variance = mean_of(squares, ".variance");
  Value* const small = context.scalar(name + ".epsilon", *input, epsilon);
  Value* const sum = context.node("Add", {variance, small}, name + ".sum");
  Value* const deviation = context.node("Sqrt", {sum}, name + ".deviation");
  return context.node("Div", {centered, deviation}, name + ".normalized");
}

/// The dims of a value as an operand of Reshape, where some may be open.
Value* shape_operand(LayerContext& context, const std::string& name, Value* like) {
  std::vector<std::int64_t> dims{0};  // the batch, copied
  const SymShape& shape = *like->shape();
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (!shape[axis].is_known()) return context.node("Shape", {like}, name);
    dims.push_back(shape[axis].value());
  }
  return context.integers(name, dims);
}

}  // namespace

Value* add(LayerContext& context, const BatchNorm& layer, Value* input) {
  const std::string name = context.name("batch_norm", layer.name);
  const std::string who = "batch_norm '" + name + "'";
  require_within(who, "epsilon", layer.epsilon, 0);
  require_within(who, "momentum", layer.momentum, 0, 1);
  shape_of(who, *input, 2, kMostDims);
  const Shape channels{features_of(who, *input, 1)};
  const auto parameter = [&](const char* suffix, double value) {
    return constant(context, name + suffix, *input, channels, value);
  };
  Value* const weight = parameter(".weight", 1);
  Value* const bias = parameter(".bias", 0);
  Value* const mean = parameter(".running_mean", 0);
  Value* const variance = parameter(".running_var", 1);
  return context.node("BatchNormalization", {input, weight, bias, mean, variance}, name,
                      {{"epsilon", layer.epsilon}, {"momentum", layer.momentum}});
}

Value* add(LayerContext& context, const LayerNorm& layer, Value* input) {
  const std::string name = context.name("layer_norm", layer.name);
  const std::string who = "layer_norm '" + name + "'";
  require_at_least(who, "axes", layer.axes, 1);
  require_within(who, "epsilon", layer.epsilon, 0);
  if (layer.axes >= kMostDims) {
    fail(ErrorKind::argument, who, ": axes is ", layer.axes, ", wanted less than ", kMostDims);
  }
  shape_of(who, *input, static_cast<int>(layer.axes) + 1, kMostDims);
  std::vector<std::int64_t> dims;
  for (auto axis = -static_cast<int>(layer.axes); axis < 0; ++axis) {
    dims.push_back(features_of(who, *input, axis));
  }
  Value* const weight = constant(context, name + ".weight", *input, Shape(dims), 1);
  Value* const bias =
      layer.bias ? constant(context, name + ".bias", *input, Shape(dims), 0) : nullptr;
  constexpr int kOneNode = 17;
  if (context.opset() >= kOneNode) {
    std::vector<Value*> inputs{input, weight};
    if (bias != nullptr) inputs.push_back(bias);
    return context.node("LayerNormalization", inputs, name,
                        {{"axis", -layer.axes}, {"epsilon", layer.epsilon}});
  }
  Value* const normalized = normalize(context, name, input, layer.axes, layer.epsilon);
  if (bias == nullptr) return context.node("Mul", {normalized, weight}, name);
  Value* const scaled = context.node("Mul", {normalized, weight}, name + ".scaled");
  return context.node("Add", {scaled, bias}, name);
}

Value* add(LayerContext& context, const GroupNorm& layer, Value* input) {
  const std::string name = context.name("group_norm", layer.name);
  const std::string who = "group_norm '" + name + "'";
  const int rank = shape_of(who, *input, 2, kMostDims).rank();
  const std::int64_t channels = features_of(who, *input, 1);
  require_at_least(who, "groups", layer.groups, 1);
  require_within(who, "epsilon", layer.epsilon, 0);
  if (channels % layer.groups != 0) {
    fail(ErrorKind::argument, who, ": ", channels, " channels do not divide into ", layer.groups,
         " groups");
  }
  constexpr int kOneNode = 21;  // in 18 it scaled whole groups
  if (context.opset() >= kOneNode) {
    Value* const weight = constant(context, name + ".weight", *input, {channels}, 1);
    Value* const bias = constant(context, name + ".bias", *input, {channels}, 0);
    return context.node("GroupNormalization", {input, weight, bias}, name,
                        {{"num_groups", layer.groups}, {"epsilon", layer.epsilon}});
  }
  std::vector<std::int64_t> per_channel(static_cast<std::size_t>(rank) - 1, 1);
  per_channel[0] = channels;
  Value* const weight = constant(context, name + ".weight", *input, Shape(per_channel), 1);
  Value* const bias = constant(context, name + ".bias", *input, Shape(per_channel), 0);
  Value* const target = context.integers(name + ".groups", {0, layer.groups, -1});
  Value* const rows = context.node("Reshape", {input, target}, name + ".rows");
  Value* const normalized = normalize(context, name, rows, 1, layer.epsilon);
  Value* const back = shape_operand(context, name + ".shape", input);
  Value* const images = context.node("Reshape", {normalized, back}, name + ".images");
  Value* const scaled = context.node("Mul", {images, weight}, name + ".scaled");
  return context.node("Add", {scaled, bias}, name);
}

}  // namespace graft::layers
