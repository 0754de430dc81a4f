#include <algorithm>
#include <cmath>

#include "core/layers/init.h"
#include "core/layers/kinds.h"

// Layers whose weights are drawn.

namespace graft::layers {
namespace {

constexpr int kMostLinearDims = 8;

/// The bound of PyTorch's default, kaiming_uniform with a = sqrt(5).
double uniform_bound(std::int64_t fan_in) {
  return 1 / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace

Value* add(LayerContext& context, const Linear& layer, Value* input) {
  const std::string name = context.name("linear", layer.name);
  const std::string who = "linear '" + name + "'";
  require_at_least(who, "out", layer.out, 1);
  const int rank = shape_of(who, *input, 1, kMostLinearDims).rank();
  const std::int64_t in = features_of(who, *input, -1);
  const WeightStart start{layer.init, layer.seed};
  const auto add_weight = [&](const Shape& shape) {
    return context.weight(name + ".weight", input->dtype(), shape, {in, layer.out}, start);
  };
  const auto add_bias = [&] {
    return context.bias(name + ".bias", input->dtype(), {layer.out}, uniform_bound(in), start);
  };
  constexpr int kGemmWithoutBias = 11;
  if (rank == 2 && (layer.bias || context.opset() >= kGemmWithoutBias)) {
    std::vector<Value*> inputs = {input, add_weight({layer.out, in})};
    if (layer.bias) inputs.push_back(add_bias());
    return context.node("Gemm", inputs, name, {{"transB", 1}});
  }
  Value* const weight = add_weight({in, layer.out});
  if (!layer.bias) return context.node("MatMul", {input, weight}, name);
  Value* const product = context.node("MatMul", {input, weight}, name + ".matmul");
  return context.node("Add", {product, add_bias()}, name);
}

Value* add(LayerContext& context, const Cosine& layer, Value* input) {
  const std::string name = context.name("cosine", layer.name);
  const std::string who = "cosine '" + name + "'";
  require_at_least(who, "out", layer.out, 1);
  shape_of(who, *input, 2, 2);
  const std::int64_t in = features_of(who, *input, -1);
  Value* const weight = context.weight(name + ".weight", input->dtype(), {layer.out, in},
                                       {in, layer.out}, {layer.init, layer.seed});
  const auto normalized = [&](Value* rows, const char* suffix) {
    return context.node("LpNormalization", {rows}, name + suffix, {{"axis", 1}, {"p", 2}});
  };
  Value* const directions = normalized(weight, ".weight_normalized");
  Value* const turned = context.node("Transpose", {directions}, name + ".weight_transposed",
                                     {{"perm", std::vector<std::int64_t>{1, 0}}});
  return context.node("MatMul", {normalized(input, ".normalized"), turned}, name);
}

namespace {

/// A convolution, or its transpose, whose numbers fit its input.
struct ConvShape {
  Attributes attributes;
  std::vector<std::int64_t> weight;
  Fans fans;
};

std::int64_t channels_of(const std::string& who, std::int64_t out, std::int64_t groups,
                         const Value& input) {
  const std::int64_t in = features_of(who, input, 1);
  require_at_least(who, "out", out, 1);
  require_at_least(who, "groups", groups, 1);
  if (in % groups != 0 || out % groups != 0) {
    fail(ErrorKind::argument, who, ": ", in, " channels in and ", out, " out do not divide into ",
         groups, " groups");
  }
  return in;
}

/// `Kind`: Conv or ConvTranspose. `first` and `second` start the weight's shape.
template <class Kind>
ConvShape conv_shape(const std::string& who, const Kind& layer, int dims, std::int64_t first,
                     std::int64_t second) {
  const std::vector<std::int64_t> stride =
      layer.stride.empty() ? std::vector<std::int64_t>{1} : layer.stride;
  ConvShape shape{.attributes = window(who, dims, layer.kernel, stride, layer.padding),
                  .weight = {first, second},
                  .fans = {}};
  shape.attributes.set({"dilations", per_dim(who, "dilation", layer.dilation, dims, 1)});
  shape.attributes.set({"group", layer.groups});
  const std::vector<std::int64_t> kernel = shape.attributes.get_ints("kernel_shape");
  shape.weight.insert(shape.weight.end(), kernel.begin(), kernel.end());
  const Shape weight(shape.weight);
  shape.fans = {.in = weight.size(1, weight.rank()),
                .out = checked_multiply(first, weight.size(2, weight.rank()))};
  return shape;
}

template <class Kind>
Value* add_conv(LayerContext& context, const Kind& layer, const std::string& name,
                std::string_view op, const ConvShape& shape, Value* input) {
  const WeightStart start{layer.init, layer.seed};
  std::vector<Value*> inputs = {input, context.weight(name + ".weight", input->dtype(),
                                                      Shape(shape.weight), shape.fans, start)};
  if (layer.bias) {
    inputs.push_back(context.bias(name + ".bias", input->dtype(), {layer.out},
                                  uniform_bound(shape.fans.in), start));
  }
  return context.node(op, inputs, name, shape.attributes);
}

/// output_padding tells sizes apart that one stride makes equal: it is less than that, or than the
/// dilation.
void check_output_padding(const std::string& who, const std::vector<std::int64_t>& padding,
                          const Attributes& attributes) {
  const std::vector<std::int64_t> strides = attributes.get_ints("strides");
  const std::vector<std::int64_t> dilations = attributes.get_ints("dilations");
  for (std::size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < std::max(strides[i], dilations[i])) continue;
    fail(ErrorKind::argument, who, ": output_padding is ", padding[i],
         ", wanted less than the stride, ", strides[i], ", or the dilation, ", dilations[i]);
  }
}

}  // namespace

Value* add(LayerContext& context, const Conv& layer, Value* input) {
  const std::string name = context.name("conv", layer.name);
  const std::string who = "conv '" + name + "'";
  const int dims = shape_of(who, *input, 3, 5).rank() - 2;
  const std::int64_t in = channels_of(who, layer.out, layer.groups, *input);
  return add_conv(context, layer, name, "Conv",
                  conv_shape(who, layer, dims, layer.out, in / layer.groups), input);
}

Value* add(LayerContext& context, const ConvTranspose& layer, Value* input) {
  const std::string name = context.name("conv_transpose", layer.name);
  const std::string who = "conv_transpose '" + name + "'";
  const int dims = shape_of(who, *input, 3, 5).rank() - 2;
  const std::int64_t in = channels_of(who, layer.out, layer.groups, *input);
  ConvShape shape = conv_shape(who, layer, dims, in, layer.out / layer.groups);
  const std::vector<std::int64_t> padding =
      per_dim(who, "output_padding", layer.output_padding, dims, 0);
  check_output_padding(who, padding, shape.attributes);
  shape.attributes.set({"output_padding", padding});
  return add_conv(context, layer, name, "ConvTranspose", shape, input);
}

}  // namespace graft::layers
