#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

/// Two 3x3 convolutions; a projection on the shortcut where the shape changes.
void add_block(std::vector<Layer>& layers, const std::string& name, std::int64_t in,
               std::int64_t out, std::int64_t stride) {
  Residual block{.name = name};
  block.body = {conv_for_norm(name + ".conv1", out, 3, stride), BatchNorm{.name = name + ".bn1"},
                Relu{.name = name + ".relu1"}, conv_for_norm(name + ".conv2", out, 3, 1),
                BatchNorm{.name = name + ".bn2"}};
  if (stride != 1 || in != out) {
    block.shortcut = {conv_for_norm(name + ".downsample.0", out, 1, stride),
                      BatchNorm{.name = name + ".downsample.1"}};
  }
  layers.push_back(std::move(block));
  layers.push_back(Relu{.name = name + ".relu2"});
}

/// Stages of `blocks` blocks each; all but the first start with stride 2. Then the classifier.
void add_stages(std::vector<Layer>& layers, std::int64_t in,
                const std::vector<std::int64_t>& channels, int blocks, std::int64_t classes) {
  for (std::size_t stage = 0; stage < channels.size(); ++stage) {
    for (int block = 0; block < blocks; ++block) {
      add_block(layers, text("layer", stage + 1, ".", block), in, channels[stage],
                stage > 0 && block == 0 ? 2 : 1);
      in = channels[stage];
    }
  }
  layers.push_back(GlobalAveragePool{.name = "avgpool"});
  layers.push_back(Flatten{.name = "flatten"});
  layers.push_back(Linear{.name = "fc", .out = classes});
}

std::vector<Layer> stem(std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return {conv_for_norm("conv1", out, kernel, stride), BatchNorm{.name = "bn1"},
          Relu{.name = "relu"}};
}

}  // namespace

std::vector<Layer> resnet18_layers(const Shape& input, std::int64_t classes) {
  require_image("resnet18", input);
  const bool is_small = is_small_image(input);
  std::vector<Layer> layers = is_small ? stem(64, 3, 1) : stem(64, 7, 2);
  if (!is_small) {
    layers.push_back(MaxPool{.name = "maxpool", .kernel = {3}, .stride = {2}, .padding = {1}});
  }
  add_stages(layers, 64, {64, 128, 256, 512}, 2, classes);
  return layers;
}

std::vector<Layer> resnet20_layers(const Shape& input, std::int64_t classes) {
  require_image("resnet20", input);
  std::vector<Layer> layers = stem(16, 3, 1);
  add_stages(layers, 16, {16, 32, 64}, 3, classes);
  return layers;
}

}  // namespace graft
