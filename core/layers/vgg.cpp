#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

constexpr std::int64_t kPool = 0;

/// `channels`: of each 3x3 convolution.
std::vector<Layer> vgg_layers(std::string_view net, const Shape& input, std::int64_t classes,
                              const std::vector<std::int64_t>& channels) {
  require_image(net, input);
  std::vector<Layer> layers;
  int feature = 0;
  const auto next_name = [&] { return text("features.", feature++); };
  for (const std::int64_t out : channels) {
    if (out == kPool) {
      layers.push_back(MaxPool{.name = next_name()});
      continue;
    }
    layers.push_back(Conv{.name = next_name(),
                          .out = out,
                          .padding = {1},
                          .init = Init{.kind = Init::kaiming_normal, .fan_out = true}});
    layers.push_back(Relu{.name = next_name()});
  }
  layers.push_back(Flatten{.name = "flatten"});
  const Init usual{.kind = Init::normal, .deviation = 0.01};
  for (int i = 0; i < 6; i += 3) {
    layers.push_back(Linear{.name = text("classifier.", i), .out = 4096, .init = usual});
    layers.push_back(Relu{.name = text("classifier.", i + 1)});
    layers.push_back(Dropout{.name = text("classifier.", i + 2)});
  }
  layers.push_back(Linear{.name = "classifier.6", .out = classes, .init = usual});
  return layers;
}

}  // namespace

std::vector<Layer> vgg11_layers(const Shape& input, std::int64_t classes) {
  return vgg_layers("vgg11", input, classes,
                    {64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool});
}

std::vector<Layer> vgg16_layers(const Shape& input, std::int64_t classes) {
  return vgg_layers("vgg16", input, classes,
                    {64, 64, kPool, 128, 128, kPool, 256, 256, 256, kPool, 512, 512, 512, kPool,
                     512, 512, 512, kPool});
}

}  // namespace graft
