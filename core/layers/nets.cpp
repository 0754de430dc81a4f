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
  };
  return all;
}

Model make_net(std::string_view name, const Shape& input, std::int64_t classes,
               std::uint64_t seed) {
  const Net& net = find_net(name);
  if (classes < 1 || input.rank() < 1 || input.size() == 0) {
    fail(ErrorKind::argument, name, ": cannot make a net from ", input, " to ", classes,
         " classes; give a shape such as 3x32x32 and at least one class");
  }
  Model model;
  model.ir_version = kIrVersion;
  model.producer_name = "graft";
  model.set_opset("", kOpset);
  Graph& graph = model.graph();
  graph.name = name;
  std::vector<Dim> dims = {Dim("N")};
  dims.insert(dims.end(), input.begin(), input.end());
  Value* const image = graph.add_input("input", {.dtype = DType::f32, .shape = SymShape(dims)});
  LayerContext context(graph, kOpset, seed);
  Value* const output = add_layers(context, net.layers(input, classes), image);
  graph.rename(output, "logits");
  graph.add_output(output);
  return model;
}

void require_image(std::string_view net, const Shape& input) {
  if (input.rank() == 3) return;
  fail(ErrorKind::shape, net, ": an input of shape ", input,
       " is no image, wanted channels, height and width, such as 1x28x28");
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
