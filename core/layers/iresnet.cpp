#include "core/layers/layer_context.h"
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

/// max(x, 0) + slope * min(x, 0), with a slope a channel.
Value* add_prelu(LayerContext& context, const std::string& name, Value* input) {
  constexpr double kStart = 0.25;
  const std::int64_t channels = (*input->shape())[1].value();
  Value* const slope =
      context.initializer(name + ".weight", Tensor::full(input->dtype(), {channels, 1, 1}, kStart));
  return context.node("PRelu", {input, slope}, name);
}

/// Normalizes before the first convolution; the second has the stride.
Value* add_block(LayerContext& context, const std::string& name, std::int64_t out,
                 std::int64_t stride, Value* input) {
  Value* x =
      add_layers(context,
                 {BatchNorm{.name = name + ".bn1"}, conv_for_norm(name + ".conv1", out, 3, 1),
                  BatchNorm{.name = name + ".bn2"}},
                 input);
  x = add_prelu(context, name + ".prelu", x);
  x = add_layers(context,
                 {conv_for_norm(name + ".conv2", out, 3, stride), BatchNorm{.name = name + ".bn3"}},
                 x);
  Value* shortcut = input;
  if (stride != 1 || (*input->shape())[1].value() != out) {
    shortcut = add_layers(context,
                          {conv_for_norm(name + ".downsample.0", out, 1, stride),
                           BatchNorm{.name = name + ".downsample.1"}},
                          input);
  }
  return context.node("Add", {x, shortcut}, name);
}

}  // namespace

Value* build_iresnet18(LayerContext& context, Value* image, std::int64_t classes) {
  require_image("iresnet18", sample_of(*image));
  constexpr int kBlocks = 2;
  Value* x =
      add_layers(context, {conv_for_norm("conv1", 64, 3, 1), BatchNorm{.name = "bn1"}}, image);
  x = add_prelu(context, "prelu", x);
  int stage = 0;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    ++stage;
    for (int block = 0; block < kBlocks; ++block) {
      x = add_block(context, text("layer", stage, ".", block), out, block == 0 ? 2 : 1, x);
    }
  }
  return add_layers(context,
                    {BatchNorm{.name = "bn2"}, Dropout{.name = "dropout", .ratio = 0.4F},
                     Flatten{.name = "flatten"}, Linear{.name = "fc", .out = classes},
                     BatchNorm{.name = "features"}},
                    x);
}

}  // namespace graft
