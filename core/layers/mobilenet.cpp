#include "core/base/error.h"
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

void add_conv(std::vector<Layer>& layers, const std::string& name, std::int64_t out,
              std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  layers.push_back(conv_for_norm(name + ".0", out, kernel, stride, groups));
  layers.push_back(BatchNorm{.name = name + ".1"});
  layers.push_back(Relu6{.name = name + ".2"});
}

/// Expands the channels, convolves each alone, projects linearly; a shortcut where shapes allow it.
void add_block(std::vector<Layer>& layers, const std::string& name, std::int64_t in,
               std::int64_t out, std::int64_t stride, std::int64_t expansion) {
  std::vector<Layer> body;
  int part = 0;
  const auto next_name = [&] { return text(name, ".conv.", part++); };
  const std::int64_t hidden = in * expansion;
  if (expansion != 1) add_conv(body, next_name(), hidden, 1, 1);
  add_conv(body, next_name(), hidden, 3, stride, hidden);
  body.push_back(conv_for_norm(next_name(), out, 1, 1));
  body.push_back(BatchNorm{.name = next_name()});
  if (stride == 1 && in == out) {
    layers.push_back(Residual{.name = name, .body = std::move(body)});
  } else {
    layers.insert(layers.end(), body.begin(), body.end());
  }
}

struct Stage {
  std::int64_t expansion, channels, blocks, stride;
};

}  // namespace

std::vector<Layer> mobilenetv2_layers(const Shape& input, std::int64_t classes) {
  require_image("mobilenetv2", input);
  const std::int64_t early_stride = is_small_image(input) ? 1 : 2;
  const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, early_stride}, {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2},           {6, 320, 1, 1}};
  std::vector<Layer> layers;
  int feature = 0;
  const auto next_name = [&] { return text("features.", feature++); };
  std::int64_t in = 32;
  add_conv(layers, next_name(), in, 3, early_stride);
  for (const Stage& stage : stages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      add_block(layers, next_name(), in, stage.channels, block == 0 ? stage.stride : 1,
                stage.expansion);
      in = stage.channels;
    }
  }
  add_conv(layers, next_name(), 1280, 1, 1);
  layers.push_back(GlobalAveragePool{.name = "avgpool"});
  layers.push_back(Flatten{.name = "flatten"});
  layers.push_back(Dropout{.name = "classifier.0", .ratio = 0.2F});
  layers.push_back(Linear{.name = "classifier.1", .out = classes});
  return layers;
}

}  // namespace graft
