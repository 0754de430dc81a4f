#include "core/layers/layer_context.h"
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

constexpr int kLevels = 4;
constexpr std::int64_t kFirstChannels = 64;

Value* add_double_convolution(LayerContext& context, const std::string& name, std::int64_t out,
                              Value* input) {
  const std::string part = name + ".double_conv.";
  return add_layers(context,
                    {conv_for_norm(part + "0", out, 3, 1), BatchNorm{.name = part + "1"},
                     Relu{.name = part + "2"}, conv_for_norm(part + "3", out, 3, 1),
                     BatchNorm{.name = part + "4"}, Relu{.name = part + "5"}},
                    input);
}

}  // namespace

Value* build_unet(LayerContext& context, Value* image, std::int64_t classes) {
  const Shape sample = sample_of(*image);
  require_image("unet", sample);
  require_multiple("unet", sample, std::int64_t{1} << kLevels);
  std::int64_t channels = kFirstChannels;
  std::vector<Value*> skipped;
  Value* x = add_double_convolution(context, "inc", channels, image);
  for (int level = 1; level <= kLevels; ++level) {
    skipped.push_back(x);
    channels *= 2;
    const std::string name = text("down", level, ".maxpool_conv.");
    x = add_layer(context, MaxPool{.name = name + "0"}, x);
    x = add_double_convolution(context, name + "1", channels, x);
  }
  for (int level = 1; level <= kLevels; ++level) {
    channels /= 2;
    const std::string name = text("up", level);
    x = add_layer(
        context, ConvTranspose{.name = name + ".up", .out = channels, .kernel = {2}, .stride = {2}},
        x);
    x = context.node("Concat", {skipped.back(), x}, name + ".concat", {{"axis", 1}});
    skipped.pop_back();
    x = add_double_convolution(context, name + ".conv", channels, x);
  }
  return add_layer(context, Conv{.name = "outc.conv", .out = classes, .kernel = {1}}, x);
}

}  // namespace graft
