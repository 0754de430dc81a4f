// What else a long training wants, each in a few lines: what a step takes, a rate that is looked
// for, a rate that falls when nothing gets better, a stop by Ctrl-C, a metric of one's own, what
// went wrong, notes in the file, and a folder that graft plot and graft report show.
// Checkpoints and going on after a kill: long_run.cpp.
//
//   overnight MODEL OUT [FOLDER [EPOCHS [SAMPLES]]]
#include <graft/data.h>
#include <graft/onnx.h>
#include <graft/run.h>
#include <graft/train.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

using namespace graft;

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// A dry run: one step on a copy, and nothing is written.
void say_what_a_step_takes(const std::string& path, DataLoader& loader) {
  Model model = onnx::load(path);
  Trainer trainer(model, {.optimizer = AdamW{}});
  trainer.step(*loader.begin());
  const TrainStep& step = trainer.train_step();
  std::printf("%lld parameters, %zu bytes of activations, %zu of the optimizer\n",
              static_cast<long long>(step.parameter_count()), step.arena_bytes(),
              step.state_bytes());
}

float rate_for(const std::string& path, DataLoader& loader) {
  Model model = onnx::load(path);
  Trainer trainer(model, {.optimizer = AdamW{}});
  return find_rate(trainer, loader).rate;
}

/// A metric: how many of the class that is recognised worst are recognised.
class WorstClass : public Metric {
 public:
  void reset() override { counts_.reset(); }
  void add(const Tensor& prediction, const Tensor& target, int class_axis) override {
    counts_.add(prediction, target, class_axis);
  }
  std::vector<std::pair<std::string, double>> values() const override {
    double worst = 1.0;
    for (std::int64_t c = 0; c < counts_.classes(); ++c) {
      std::int64_t all = 0;
      for (std::int64_t guess = 0; guess < counts_.classes(); ++guess)
        all += counts_.count(c, guess);
      const auto right = static_cast<double>(counts_.count(c, c));
      if (all > 0) worst = std::min(worst, right / static_cast<double>(all));
    }
    return {{"worst_class", worst}};
  }

 private:
  ConfusionMatrix counts_;
};

/// A callback: what a program may want to be told of.
class Diary : public Callback {
 public:
  void on_epoch(Run& /*run*/, const EpochReport& report) override {
    std::printf("epoch %d: loss %.4f, worst class %.1f %%\n", report.epoch, report.loss,
                report.validation->metrics.front().second * 100.0);
  }
  void on_error(Run& run, const Error& error) override {
    std::printf("failed in epoch %d: %s\n", run.position.epoch + 1, error.what());
  }
};

/// What the file tells who uses it: graft eval, predict and run heed these.
void leave_notes(Model& model) {
  model.metadata.emplace_back("graft.normalize", "0.286:0.353");
  model.metadata.emplace_back("graft.class_names",
                              R"(["T-shirt","Trouser","Pullover","Dress","Coat","Sandal",)"
                              R"("Shirt","Sneaker","Bag","Boot"])");
}

/// What graft report takes from the folder beside metrics.jsonl.
void write_settings(const std::string& folder, const std::string& out) {
  std::ofstream(folder + "/config.json")
      << R"({"settings": {"data": "fashion-mnist", "normalize": "data", "limit": 1000, "out": ")"
      << out << "\"}}\n";
}

void train(const std::string& in, const std::string& out, const std::string& folder, int epochs,
           std::int64_t samples) {
  const std::vector<Transform> normalized{*known_normalization("fashion-mnist")};
  DataLoader loader(first_samples(fashion_mnist(Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7, .transforms = normalized});
  DataLoader held_back(first_samples(fashion_mnist(Split::test), samples),
                       {.batch = 500, .transforms = normalized});
  say_what_a_step_takes(in, loader);
  const float rate = rate_for(in, loader);
  std::printf("learning rate %g\n", static_cast<double>(rate));

  Model model = onnx::load(in);
  Trainer trainer(model, {.optimizer = AdamW{.lr = rate}});
  trainer.add_metric(std::make_shared<WorstClass>());
  std::signal(SIGINT, [](int) { interrupted = 1; });
  trainer.fit(loader, {.epochs = epochs,
                       .validation = &held_back,
                       .callbacks = {std::make_shared<Checkpoint>(folder),
                                     std::make_shared<Diary>(), std::make_shared<RunLog>(folder),
                                     std::make_shared<ReduceOnPlateau>(
                                         ReduceOnPlateau::Options{.factor = 0.5F, .patience = 2})},
                       .goes_on = [] { return interrupted == 0; },
                       .on_problem =
                           [](const std::string& problem) {
                             std::fprintf(stderr, "overnight: %s\n", problem.c_str());
                           },
                       .measure_first = true});
  leave_notes(model);
  onnx::save(model, out);
  write_settings(folder, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: overnight MODEL OUT [FOLDER [EPOCHS [SAMPLES]]]\n");
    return 1;
  }
  try {
    train(argv[1], argv[2], argc > 3 ? argv[3] : "runs/overnight",
          argc > 4 ? std::stoi(argv[4]) : 5, argc > 5 ? std::stoll(argv[5]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overnight: %s\n", error.what());
    return 1;
  }
}
