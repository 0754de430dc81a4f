// The whole arc: a LeNet made in C++ is trained, saved as ONNX, loaded, measured, trained further,
// then cut at its 500 features and given new layers, which train on their own.
//
//   quickstart [FOLDER [SAMPLES]]      FOLDER gets the files (default: out)
#include <graft/data.h>
#include <graft/edit.h>
#include <graft/layers.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace graft;

namespace {

using Clock = std::chrono::steady_clock;

Model make_lenet() {
  Model model;
  model.ir_version = 8;
  model.producer_name = "graft";
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const image = graph.add_input("image", {DType::f32, SymShape{Dim("N"), 1, 28, 28}});
  LayerContext context(graph, model.opset(), /*seed=*/0);
  graph.add_output(
      add_layers(context,
                 {Conv{.name = "conv1", .out = 20, .kernel = {5}}, Relu{}, MaxPool{.kernel = {2}},
                  Conv{.name = "conv2", .out = 50, .kernel = {5}}, Relu{}, MaxPool{.kernel = {2}},
                  Flatten{}, Linear{.name = "fc1", .out = 500}, Relu{.name = "features"},
                  Linear{.name = "fc2", .out = 10}},
                 image));
  return model;
}

class Quickstart {
 public:
  Quickstart(std::filesystem::path folder, std::int64_t samples)
      : folder_(std::move(folder)),
        loader_(first_samples(fashion_mnist(Split::train), samples),
                {.batch = 64, .shuffle = true, .seed = 7}),
        test_loader_(first_samples(fashion_mnist(Split::test), samples), {.batch = 500}) {
    std::filesystem::create_directories(folder_);
  }

  void run() {
    std::printf("%-28s %9s %8s  %s\n", "stage", "accuracy", "seconds", "file");
    Model model = make_lenet();
    train(model, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}, .schedule = cosine_lr()}, 2);
    save(model, "train LeNet, 2 epochs", "lenet.onnx");

    start_ = Clock::now();
    model = onnx::load(folder_ / "lenet.onnx");
    report("load and evaluate", accuracy_of(model), "");

    train(model, {.optimizer = SGD{.lr = 0.01F, .momentum = 0.9F}, .schedule = cosine_lr()}, 1);
    save(model, "train it for 1 more epoch", "lenet_retrained.onnx");

    edit::truncate(model, "features");
    edit::append(model,
                 {Linear{.name = "new1", .out = 128}, Relu{}, Linear{.name = "new2", .out = 32},
                  Relu{}, Linear{.name = "new3", .out = 10}});
    train(model, {.optimizer = AdamW{.lr = 1e-3F}, .trainable = "new.*"}, 1);
    save(model, "new layers, 1 epoch", "lenet_transferred.onnx");
  }

 private:
  void train(Model& model, TrainOptions options, int epochs) {
    start_ = Clock::now();
    Trainer trainer(model, std::move(options));
    ProgressBar bar;
    trainer.fit(loader_, {.epochs = epochs, .on_step = [&](const Progress& progress) {
                            bar.show(progress);
                            return true;
                          }});
  }

  double accuracy_of(const Model& model) {
    return Evaluator(model).run(test_loader_).accuracy.value();
  }

  void save(const Model& model, const char* stage, const char* name) {
    onnx::save(model, folder_ / name);
    report(stage, accuracy_of(model), (folder_ / name).string());
  }

  void report(const char* stage, double accuracy, const std::string& file) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::printf("%-28s %7.2f %% %8.1f  %s\n", stage, accuracy * 100.0, seconds, file.c_str());
    std::fflush(stdout);
  }

  std::filesystem::path folder_;
  DataLoader loader_;
  DataLoader test_loader_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Quickstart(argc > 1 ? argv[1] : "out", argc > 2 ? std::stoll(argv[2]) : 60000).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
  }
}
