#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/model.h"
#include "core/layers/layer.h"

namespace graft {

/// A net that `make_net` can write.
struct Net {
  std::string_view name;
  std::string_view description;
  /// The layers for samples of shape `input`, without the batch: [C,H,W] unless said otherwise.
  std::vector<Layer> (*layers)(const Shape& input, std::int64_t classes);
};

/// All of them, in the order in which users see them.
const std::vector<Net>& nets();

/// A fresh net, ready to be trained and to be written to a file: one f32 input "input" of shape
/// [N,*input], one output "logits" of shape [N,classes], opset 17. Parameters depend on `seed`,
/// their name and their shape only.
/// Throws Error{argument}, listing the nets, if there is none of that name, and if `classes` < 1 or
/// a dim of `input` is 0; Error{shape} if the net cannot take such an input.
Model make_net(std::string_view name, const Shape& input, std::int64_t classes,
               std::uint64_t seed = 0);

// The layers of each net. Names of parameters are those of torchvision where it has the net.

/// Any input; flattened, 256 and 128 hidden ReLU units.
std::vector<Layer> mlp_layers(const Shape& input, std::int64_t classes);
/// Two 5x5 convolutions without padding (20, 50), each with ReLU and 2x2 maximum pooling; 500
/// hidden ReLU units: the CNN of Apache SINGA's examples. Source: LeCun et al., Proc. IEEE 86 (11),
/// 1998.
std::vector<Layer> lenet_layers(const Shape& input, std::int64_t classes);
/// Source: He et al., arXiv 1512.03385, section 4.1, with projections where the shape changes
/// (option B). Images below 64 pixels get a 3x3 stem without pooling instead of 7x7 with it.
std::vector<Layer> resnet18_layers(const Shape& input, std::int64_t classes);
/// Source: the same, section 4.2 (n = 3: 16, 32, 64 channels), but with projections (option B)
/// where the paper pads with zeros (option A).
std::vector<Layer> resnet20_layers(const Shape& input, std::int64_t classes);
/// Source: Sandler et al., arXiv 1801.04381, table 2. For images below 64 pixels the stem and the
/// second stage have stride 1.
std::vector<Layer> mobilenetv2_layers(const Shape& input, std::int64_t classes);

}  // namespace graft
