// A small net written node by node, trained in a loop of one's own.
//
//   mnist [DATA [OUT [SAMPLES]]]      DATA: fashion-mnist (default), mnist:DIR, ...
#include <graft/data.h>
#include <graft/layers.h>
#include <graft/model.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <cmath>
#include <cstdio>
#include <string>

using namespace graft;

namespace {

using Ints = std::vector<std::int64_t>;

/// Weights drawn from U(-b, b), b = 1/sqrt(fan_in), as PyTorch starts its layers.
Value* parameter(Graph& graph, const std::string& name, const Shape& shape, std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return graph.add_initializer(name, init_uniform(/*seed=*/1, name, DType::f32, shape, bound));
}

Value* conv_relu_pool(Builder& builder, const std::string& name, Value* x, std::int64_t in,
                      std::int64_t out) {
  Graph& graph = builder.graph();
  Value* const weight = parameter(graph, name + ".weight", {out, in, 3, 3}, in * 9);
  Value* const bias = parameter(graph, name + ".bias", {out}, in * 9);
  x = builder.node("Conv", "", {x, weight, bias}, 1, {{"pads", Ints{1, 1, 1, 1}}})->output();
  x = builder.node("Relu", "", {x}, 1)->output();
  const Attributes window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  return builder.node("MaxPool", "", {x}, 1, window)->output();
}

/// [N,1,28,28] -> [N,10].
Model make_model() {
  Model model;
  model.ir_version = 8;
  model.producer_name = "graft";
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const image = graph.add_input("image", {DType::f32, SymShape{Dim("N"), 1, 28, 28}});
  Builder builder(graph);
  Value* x = conv_relu_pool(builder, "conv1", image, 1, 16);
  x = conv_relu_pool(builder, "conv2", x, 16, 32);
  x = builder.node("Flatten", "", {x}, 1)->output();
  constexpr std::int64_t kFeatures = 32 * 7 * 7;
  Value* const weight = parameter(graph, "fc.weight", {10, kFeatures}, kFeatures);
  Value* const bias = parameter(graph, "fc.bias", {10}, kFeatures);
  graph.add_output(
      builder
          .node("Gemm", "", {x, weight, bias}, std::vector<std::string>{"logits"}, {{"transB", 1}})
          ->output());
  return model;
}

void train(const std::string& spec, const std::string& out, std::int64_t samples) {
  DataLoader loader(first_samples(open_data(spec, Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader test_loader(first_samples(open_data(spec, Split::test), samples), {.batch = 500});

  Model model = make_model();
  constexpr int kEpochs = 2;
  const std::int64_t updates = kEpochs * loader.batches();
  TrainStep step(model, {.loss = cross_entropy(),
                         .optimizer = AdamW{.lr = 2e-3F},
                         .schedule = with_warmup(cosine_lr(), updates / 20),
                         .total_updates = updates});
  Evaluator evaluator(model);  // sees the weights as they are at each call
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double loss_sum = 0.0;
    for (const Batch& batch : loader) {
      loss_sum += step.run(batch.inputs, batch.target) * static_cast<double>(batch.size);
    }
    const Evaluation test = evaluator.run(test_loader);
    std::printf("epoch %d: loss %.4f, test accuracy %.2f %%\n", epoch,
                loss_sum / static_cast<double>(loader.dataset().size()), *test.accuracy * 100.0);
  }
  onnx::save(model, out);
  std::printf("wrote %s\n", out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "fashion-mnist", argc > 2 ? argv[2] : "mnist.onnx",
          argc > 3 ? std::stoll(argv[3]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mnist: %s\n", error.what());
    return 1;
  }
}
