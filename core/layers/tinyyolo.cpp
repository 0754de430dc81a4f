#include "core/layers/layer_context.h"
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {

Value* build_tinyyolov2(LayerContext& context, Value* image, std::int64_t classes) {
  constexpr std::int64_t kBoxes = 5;
  constexpr std::int64_t kNumbersOfBox = 5;  // place, size and how sure
  constexpr std::int64_t kChannels[] = {16, 32, 64, 128, 256, 512, 1024, 1024};
  constexpr int kHalvings = 5;
  const Shape sample = sample_of(*image);
  require_image("tinyyolov2", sample);
  require_multiple("tinyyolov2", sample, std::int64_t{1} << kHalvings);
  Value* x = image;
  int number = 0;
  for (const std::int64_t out : kChannels) {
    const std::string name = std::to_string(++number);
    x = add_layers(context,
                   {conv_for_norm("conv" + name, out, 3, 1), BatchNorm{.name = "bn" + name},
                    LeakyRelu{.name = "leaky" + name, .alpha = 0.1F}},
                   x);
    if (number <= kHalvings) {
      x = add_layer(context, MaxPool{.name = "pool" + name}, x);
    } else if (number == kHalvings + 1) {
      // A window of 2 at each pixel: zeros to the right and below keep the size.
      Value* const pads = context.integers("pad6.pads", {0, 0, 0, 0, 0, 0, 1, 1});
      x = context.node("Pad", {x, pads}, "pad6");
      x = add_layer(context, MaxPool{.name = "pool6", .kernel = {2}, .stride = {1}}, x);
    }
  }
  const std::int64_t out = kBoxes * (kNumbersOfBox + classes);
  return add_layer(context, Conv{.name = "conv9", .out = out, .kernel = {1}}, x);
}

}  // namespace graft
