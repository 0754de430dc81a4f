#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/model.h"
#include "core/layers/layer.h"

namespace graft {

class LayerContext;

/// A net that `make_net` can write.
struct Net {
  std::string_view name;
  std::string_view description;
  /// The layers for samples of shape `input`, without the batch: [C,H,W] unless said otherwise.
  /// Null where `build` makes the net.
  std::vector<Layer> (*layers)(const Shape& input, std::int64_t classes) = nullptr;
  /// Adds a net that is no chain of layers behind `input` [N,...], and returns its output.
  Value* (*build)(LayerContext& context, Value* input, std::int64_t classes) = nullptr;
  /// Samples are token numbers [length], i64, not f32.
  bool takes_tokens = false;
};

/// All of them, in the order in which users see them.
const std::vector<Net>& nets();

/// A fresh net, ready to be trained and to be written to a file: one input "input" of shape
/// [N,*input], one output "logits", [N,classes] unless the net says otherwise, opset 17. Parameters
/// depend on `seed`, their name and their shape only.
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
/// Source: Simonyan and Zisserman, arXiv 1409.1556, table 1, columns A and D; images of 32 pixels
/// and more. As torchvision's but for the adaptive pooling, which does nothing at 224 pixels.
std::vector<Layer> vgg11_layers(const Shape& input, std::int64_t classes);
std::vector<Layer> vgg16_layers(const Shape& input, std::int64_t classes);
/// Boxes in five sizes: [N,5*(5+classes),H/32,W/32]. Source: Redmon and Farhadi, arXiv 1612.08242;
/// layers of tiny-yolo-voc.cfg of Darknet.
Value* build_tinyyolov2(LayerContext& context, Value* image, std::int64_t classes);
/// A label a pixel: [N,classes,H,W]; height and width are multiples of 16. Source: Ronneberger et
/// al., arXiv 1505.04597, figure 1, with padding and batch normalization, as most have it today.
Value* build_unet(LayerContext& context, Value* image, std::int64_t classes);
/// The backbone of ArcFace with 18 layers: `classes` numbers a face, the embedding. Source: Deng et
/// al., arXiv 1801.07698; Han et al., arXiv 1610.02915, for the blocks.
Value* build_iresnet18(LayerContext& context, Value* image, std::int64_t classes);
/// Text in a line of 32 pixels height: log-probabilities [W/4+1,N,classes] for the loss ctc, class
/// 0 being the blank. Source: Shi et al., arXiv 1507.05717, table 1.
Value* build_crnn(LayerContext& context, Value* image, std::int64_t classes);
/// ViT-Ti: 12 layers of 192, 3 heads; patches of 16 pixels, of 4 in images below 64. Sources:
/// Dosovitskiy et al., arXiv 2010.11929; Touvron et al., arXiv 2012.12877, for the size.
Value* build_vit(LayerContext& context, Value* image, std::int64_t classes);
/// BERT-mini, 4 layers of 256, 4 heads, 30,522 tokens, with a classifier at the first. Sources:
/// Devlin et al., arXiv 1810.04805; Turc et al., arXiv 1908.08962, for the size.
Value* build_bert(LayerContext& context, Value* tokens, std::int64_t classes);
/// GPT-2 in 6 layers of 192, 6 heads: for each token the next, [N,length,classes]; `classes` is the
/// vocabulary, whose embedding is the last layer, too. Source: Radford et al., Language Models are
/// Unsupervised Multitask Learners, 2019.
Value* build_gpt(LayerContext& context, Value* tokens, std::int64_t classes);

}  // namespace graft
