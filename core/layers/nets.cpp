#include "core/layers/nets.h"

#include "core/base/closest.h"
#include "core/layers/layer_context.h"
#include "core/layers/nets_internal.h"

namespace graft {
namespace {

/// Old enough that runtimes of the last years read the file; ONNX pairs it with this ir version.
constexpr std::int64_t kOpset = 17;
constexpr std::int64_t kIrVersion = 8;

const Net& find_net(std::string_view name) {
  std::vector<std::string> names;
  for (const Net& net : nets()) {
    if (net.name == name) return net;
    names.emplace_back(net.name);
  }
  fail(ErrorKind::argument, "no net is called '", name, "'; nets are: ", quoted_list(names));
}

}  // namespace

const std::vector<Net>& nets() {
  static const std::vector<Net> all = {
      {"mlp", "two hidden layers, 256 and 128", mlp_layers},
      {"lenet", "two 5x5 convolutions and two linear layers", lenet_layers},
      {"resnet18", "residual net for images from 32x32 on", resnet18_layers},
      {"resnet20", "small residual net for 32x32 images", resnet20_layers},
      {"mobilenetv2", "inverted residuals of depthwise convolutions", mobilenetv2_layers},
      {"vgg11", "8 convolutions and 3 linear layers, for images from 32x32 on", vgg11_layers},
      {"vgg16", "13 convolutions and 3 linear layers, the same", vgg16_layers},
      {.name = "unet",
       .description = "a class a pixel; sides are multiples of 16",
       .build = build_unet},
      {.name = "vit",
       .description = "vision transformer, ViT-Ti; patches of 16, below 64 pixels of 4",
       .build = build_vit},
      {.name = "tinyyolov2",
       .description = "boxes; sides are multiples of 32",
       .build = build_tinyyolov2},
      {.name = "iresnet18",
       .description = "faces to --classes numbers, the backbone of ArcFace",
       .build = build_iresnet18},
      {.name = "crnn",
       .description = "text in lines 32 pixels high, for the loss ctc",
       .build = build_crnn},
      {.name = "bert",
       .description = "classes of a text of --input tokens, BERT-mini",
       .build = build_bert,
       .takes_tokens = true},
      {.name = "gpt",
       .description = "the next of --input tokens; --classes is the vocabulary",
       .build = build_gpt,
       .takes_tokens = true},
  };
  return all;
}

Model make_net(std::string_view name, const Shape& input, std::int64_t classes,
               std::uint64_t seed) {
  const Net& net = find_net(name);
  constexpr std::int64_t kMostClasses = (std::int64_t{1} << 31) - 1;  // some nets give several each
  if (classes < 1 || classes > kMostClasses || input.rank() < 1 || input.size() == 0) {
    fail(ErrorKind::argument, name, ": cannot make a net from ", input, " to ", classes,
         " classes; give a shape such as 3x32x32 and at least one class, at most ", kMostClasses);
  }
  Model model;
  model.ir_version = kIrVersion;
  model.producer_name = "graft";
  model.set_opset("", kOpset);
  Graph& graph = model.graph();
  graph.name = name;
  std::vector<Dim> dims = {Dim("N")};
  dims.insert(dims.end(), input.begin(), input.end());
  if (net.takes_tokens && input.rank() != 1) {
    fail(ErrorKind::shape, name, ": an input of shape ", input,
         " is no text, wanted its length, such as 64");
  }
  const DType dtype = net.takes_tokens ? DType::i64 : DType::f32;
  Value* const start = graph.add_input("input", {.dtype = dtype, .shape = SymShape(dims)});
  LayerContext context(graph, kOpset, seed);
  Value* const output = net.build != nullptr
                            ? net.build(context, start, classes)
                            : add_layers(context, net.layers(input, classes), start);
  graph.rename(output, "logits");
  graph.add_output(output);
  return model;
}

void require_image(std::string_view net, const Shape& input) {
  if (input.rank() == 3) return;
  fail(ErrorKind::shape, net, ": an input of shape ", input,
       " is no image, wanted channels, height and width, such as 1x28x28");
}

Shape sample_of(const Value& input) {
  std::vector<std::int64_t> dims;
  for (int axis = 1; axis < input.shape()->rank(); ++axis) {
    dims.push_back((*input.shape())[axis].value());
  }
  return Shape(std::move(dims));
}

void require_multiple(std::string_view net, const Shape& image, std::int64_t step) {
  if (image[1] % step == 0 && image[2] % step == 0) return;
  fail(ErrorKind::shape, net, ": sides of ", image[1], " and ", image[2],
       " pixels, wanted multiples of ", step);
}

std::vector<Layer> mlp_layers(const Shape& input, std::int64_t classes) {
  std::vector<Layer> layers;
  if (input.rank() > 1) layers.push_back(Flatten{.name = "flatten"});
  const auto hidden = [&](const std::string& number, std::int64_t units) {
    layers.push_back(Linear{.name = "fc" + number, .out = units});
    layers.push_back(Relu{.name = "relu" + number});
  };
  hidden("1", 256);
  hidden("2", 128);
  layers.push_back(Linear{.name = "fc3", .out = classes});
  return layers;
}

std::vector<Layer> lenet_layers(const Shape& input, std::int64_t classes) {
  require_image("lenet", input);
  return {
      Conv{.name = "conv1", .out = 20, .kernel = {5}},
      Relu{.name = "relu1"},
      MaxPool{.name = "pool1", .kernel = {2}},
      Conv{.name = "conv2", .out = 50, .kernel = {5}},
      Relu{.name = "relu2"},
      MaxPool{.name = "pool2", .kernel = {2}},
      Flatten{.name = "flatten"},
      Linear{.name = "fc1", .out = 500},
      Relu{.name = "relu3"},
      Linear{.name = "fc2", .out = classes},
  };
}

}  // namespace graft
