// A training that survives being killed: call it again and it goes on where it was.
//
//   long_run MODEL OUT [FOLDER [EPOCHS [SAMPLES]]]
#include <graft/data.h>
#include <graft/onnx.h>
#include <graft/run.h>
#include <graft/train.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

using namespace graft;

namespace {

/// A callback of the program's own.
class Table : public Callback {
 public:
  void on_epoch(Run& /*run*/, const EpochReport& report) override {
    std::printf("%3d  %.4f", report.epoch, report.loss);
    for (const auto& [name, value] : report.validation->metrics) {
      std::printf("  %s %.4f", name.c_str(), value);
    }
    std::printf("\n");
  }
};

void train(const std::string& in, const std::string& out, const std::string& folder, int epochs,
           std::int64_t samples) {
  Model model = onnx::load(in);
  DataLoader loader(first_samples(fashion_mnist(Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader held_back(first_samples(fashion_mnist(Split::test), samples), {.batch = 500});
  Trainer trainer(model, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}});
  trainer.add_metric(metric_from_name("top5"));
  trainer.add_metric(metric_from_name("f1"));

  const auto checkpoint = std::make_shared<Checkpoint>(folder);
  const bool goes_on = std::filesystem::exists(checkpoint->last());
  trainer.fit(
      loader,
      {.epochs = epochs,
       .validation = &held_back,
       .callbacks = {checkpoint, std::make_shared<Table>(), std::make_shared<RunLog>(folder),
                     std::make_shared<TensorBoardLog>(folder),
                     std::make_shared<EarlyStopping>(EarlyStopping::Options{.patience = 3})},
       .resume = goes_on ? checkpoint->last() : ""});
  // The best weights rather than the last.
  trainer.train_step().load_state(load_training_state(checkpoint->best()).step);
  onnx::save(model, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: long_run MODEL OUT [FOLDER [EPOCHS [SAMPLES]]]\n");
    return 1;
  }
  try {
    train(argv[1], argv[2], argc > 3 ? argv[3] : "runs/long", argc > 4 ? std::stoi(argv[4]) : 5,
          argc > 5 ? std::stoll(argv[5]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "long_run: %s\n", error.what());
    return 1;
  }
}
