#include "core/layers/layer_context.h"
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

constexpr std::int64_t kHeight = 32;

/// Rows go from 32 to 1, columns to a quarter and one more.
std::vector<Layer> column_layers() {
  std::vector<Layer> layers;
  const auto add = [&](int number, std::int64_t out, std::int64_t kernel, bool has_norm) {
    const std::string name = std::to_string(number);
    layers.push_back(Conv{.name = "cnn.conv" + name,
                          .out = out,
                          .kernel = {kernel},
                          .padding = {kernel == 3 ? 1 : 0}});
    if (has_norm) layers.push_back(BatchNorm{.name = "cnn.batchnorm" + name});
    layers.push_back(Relu{.name = "cnn.relu" + name});
  };
  const auto halve_rows = [&](const char* name) {
    layers.push_back(MaxPool{.name = name, .kernel = {2}, .stride = {2, 1}, .padding = {0, 1}});
  };
  add(0, 64, 3, false);
  layers.push_back(MaxPool{.name = "cnn.pooling0"});
  add(1, 128, 3, false);
  layers.push_back(MaxPool{.name = "cnn.pooling1"});
  add(2, 256, 3, true);
  add(3, 256, 3, false);
  halve_rows("cnn.pooling2");
  add(4, 512, 3, true);
  add(5, 512, 3, false);
  halve_rows("cnn.pooling3");
  add(6, 512, 2, true);
  return layers;
}

}  // namespace

Value* build_crnn(LayerContext& context, Value* image, std::int64_t classes) {
  constexpr std::int64_t kHidden = 256;
  const Shape sample = sample_of(*image);
  require_image("crnn", sample);
  if (sample[1] != kHeight) {
    fail(ErrorKind::shape, "crnn: an image of height ", sample[1], ", wanted ", kHeight);
  }
  Value* x = add_layers(context, column_layers(), image);  // [N,512,1,columns]
  x = context.node("Squeeze", {x, context.integers("columns.axes", {2})}, "columns");
  x = context.node("Transpose", {x}, "steps", {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
  x = add_layers(context,
                 {Lstm{.name = "rnn.0.rnn", .hidden = kHidden, .bidirectional = true},
                  Linear{.name = "rnn.0.embedding", .out = kHidden},
                  Lstm{.name = "rnn.1.rnn", .hidden = kHidden, .bidirectional = true},
                  Linear{.name = "rnn.1.embedding", .out = classes}},
                 x);
  x = context.node("Transpose", {x}, "by_step", {{"perm", std::vector<std::int64_t>{1, 0, 2}}});
  return add_layer(context, LogSoftmax{.name = "log_softmax"}, x);
}

}  // namespace graft
