#include <cmath>

#include "core/layers/init.h"
#include "core/layers/kinds.h"

// Layers with parameters.

namespace graft::layers {
namespace {

constexpr int kMostDims = 8;  // of what is not an image

/// The bound of PyTorch's default, kaiming_uniform with a = sqrt(5).
double uniform_bound(std::int64_t fan_in) {
  return 1 / std::sqrt(static_cast<double>(fan_in));
}

Value* constant(LayerContext& context, const std::string& name, const Value& like,
                std::int64_t length, double value) {
  return context.initializer(name, Tensor::full(like.dtype(), {length}, value));
}

}  // namespace

Value* add(LayerContext& context, const Linear& layer, Value* input) {
  const std::string name = context.name("linear", layer.name);
  const std::string who = "linear '" + name + "'";
  require_at_least(who, "out", layer.out, 1);
  const int rank = shape_of(who, *input, 1, kMostDims).rank();
  const std::int64_t in = features_of(who, *input, -1);
  const double bound = uniform_bound(in);
  const auto parameter = [&](const char* suffix, const Shape& shape) {
    return context.uniform(name + suffix, input->dtype(), shape, bound, layer.seed);
  };
  constexpr int kGemmWithoutBias = 11;
  if (rank == 2 && (layer.bias || context.opset() >= kGemmWithoutBias)) {
    std::vector<Value*> inputs = {input, parameter(".weight", {layer.out, in})};
    if (layer.bias) inputs.push_back(parameter(".bias", {layer.out}));
    return context.node("Gemm", inputs, name, {{"transB", 1}});
  }
  Value* const weight = parameter(".weight", {in, layer.out});
  if (!layer.bias) return context.node("MatMul", {input, weight}, name);
  Value* const product = context.node("MatMul", {input, weight}, name + ".matmul");
  return context.node("Add", {product, parameter(".bias", {layer.out})}, name);
}

namespace {

/// A Conv whose numbers fit its input.
struct ConvShape {
  Attributes attributes;
  std::vector<std::int64_t> weight;
  std::int64_t fan_in;
  std::int64_t fan_out;
};

ConvShape conv_shape(const std::string& who, const Conv& layer, const Value& input) {
  const int dims = shape_of(who, input, 3, 5).rank() - 2;
  const std::int64_t in = features_of(who, input, 1);
  require_at_least(who, "out", layer.out, 1);
  require_at_least(who, "groups", layer.groups, 1);
  if (in % layer.groups != 0 || layer.out % layer.groups != 0) {
    fail(ErrorKind::argument, who, ": ", in, " channels in and ", layer.out,
         " out do not divide into ", layer.groups, " groups");
  }
  const std::vector<std::int64_t> stride =
      layer.stride.empty() ? std::vector<std::int64_t>{1} : layer.stride;
  ConvShape shape{.attributes = window(who, dims, layer.kernel, stride, layer.padding)};
  shape.attributes.set({"dilations", per_dim(who, "dilation", layer.dilation, dims, 1)});
  shape.attributes.set({"group", layer.groups});
  const std::vector<std::int64_t> kernel = shape.attributes.get_ints("kernel_shape");
  shape.weight = {layer.out, in / layer.groups};
  shape.weight.insert(shape.weight.end(), kernel.begin(), kernel.end());
  const Shape weight(shape.weight);
  shape.fan_in = weight.size(1, weight.rank());
  shape.fan_out = checked_multiply(layer.out, weight.size(2, weight.rank()));
  return shape;
}

}  // namespace

Value* add(LayerContext& context, const Conv& layer, Value* input) {
  const std::string name = context.name("conv", layer.name);
  const ConvShape shape = conv_shape("conv '" + name + "'", layer, *input);
  const double bound = uniform_bound(shape.fan_in);
  std::vector<Value*> inputs = {input};
  if (layer.init == Init::uniform_fan_in) {
    inputs.push_back(
        context.uniform(name + ".weight", input->dtype(), Shape(shape.weight), bound, layer.seed));
  } else {
    const double deviation = std::sqrt(2 / static_cast<double>(shape.fan_out));
    inputs.push_back(context.initializer(
        name + ".weight", init_normal(layer.seed.value_or(context.seed()), name + ".weight",
                                      input->dtype(), Shape(shape.weight), deviation)));
  }
  if (layer.bias) {
    inputs.push_back(
        context.uniform(name + ".bias", input->dtype(), {layer.out}, bound, layer.seed));
  }
  return context.node("Conv", inputs, name, shape.attributes);
}

Value* add(LayerContext& context, const BatchNorm& layer, Value* input) {
  const std::string name = context.name("batch_norm", layer.name);
  const std::string who = "batch_norm '" + name + "'";
  shape_of(who, *input, 2, kMostDims);
  const std::int64_t channels = features_of(who, *input, 1);
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

}  // namespace graft::layers
