// An op of one's own with gradient and kernel: Snake, x + sin(x)^2 (arXiv 2006.08195), in a LeNet.
//
//   own_op [DATA [OUT]]      DATA: fashion-mnist (default), mnist:DIR, ...
#include <graft/graft.h>

#include <cmath>
#include <cstdio>

using namespace graft;

namespace {

std::vector<Expr> snake_gradient(const Gradient& node) {
  return {node.dy() * (call("Sin", {node.x() * 2.0}) + 1.0)};
}

/// For f32 and f64; runs on all threads, alone or within a chain of element-wise ops.
RunFunction make_snake(const KernelRequest& request) {
  RunFunction run;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    run = [](std::int64_t count, std::span<const RunOperand> x, void* y) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T value = static_cast<const T*>(x[0].elements)[i * x[0].step];
        static_cast<T*>(y)[i] = value + std::sin(value) * std::sin(value);
      }
    };
  });
  return run;
}

Model make_model() {
  Model model = make_net("lenet", {1, 28, 28}, /*classes=*/10);
  edit::truncate(model, "fc1");  // what follows its first linear layer goes
  Graph& graph = model.graph();
  graph.set_outputs({Builder(graph).node("Snake", "com.example", graph.outputs(), 1)->output()});
  edit::append(model, {Linear{.name = "head", .out = 10}});
  model.set_opset("com.example", 1);
  return model;
}

}  // namespace

int main(int argc, char** argv) try {
  const OpDef row{.name = "Snake",
                  .domain = "com.example",
                  .inputs = {{"x"}},
                  .outputs = {{"y"}},
                  .infer = infer_same,
                  .backward = snake_gradient};
  register_op(row, {{.name = "plain", .make_run = make_snake}});
  const char* const out = argc > 2 ? argv[2] : "own_op.onnx";
  DataLoader loader(open_data(argc > 1 ? argv[1] : "fashion-mnist", Split::train), {.batch = 64});
  Model model = make_model();
  Trainer(model, {.optimizer = Adam{}}).fit(loader);
  onnx::save(model, out);
  std::printf("accuracy %.4f\n", *Evaluator(onnx::load(out)).run(loader).accuracy);
} catch (const std::exception& error) {
  std::fprintf(stderr, "own_op: %s\n", error.what());
  return 1;
}
