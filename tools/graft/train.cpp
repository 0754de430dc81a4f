#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/onnx.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/summary.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/train_summary.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"
#include "train/data_spec.h"
#include "train/progress_bar.h"
#include "train/trainer.h"

namespace graft::cli {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

/// Calls `handler` at the next Ctrl-C, request to end, or loss of the terminal; from the second of
/// its kind on the process ends as usual.
void at_interrupt(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

/// While data are read there is nothing to save: the process ends at once.
void end_when_interrupted() {
  at_interrupt([](int /*signal*/) {
    static constexpr std::string_view kText =
        "graft: interrupted before the first update; nothing is written\n";
    [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(interrupted);
  });
}

/// From now on training stops after the step, and what was reached is saved.
void stop_when_interrupted() {
  at_interrupt([](int /*signal*/) { stop_asked = 1; });
}

/// A reader that goes away (`| head -1`), or a terminal that does, must not end the training: its
/// lines are lost, the model is not.
void outlive_readers() {
  std::signal(SIGPIPE, SIG_IGN);
}

std::vector<Transform> training_transforms(const TrainArguments& arguments) {
  std::vector<Transform> transforms;
  if (arguments.augment) {
    transforms.emplace_back(RandomCrop{});
    transforms.emplace_back(RandomHorizontalFlip{});
  }
  for (Transform& transform : normalization(arguments.data)) {
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

/// Null when nothing is to be measured.
std::shared_ptr<Dataset> open_validation(const TrainArguments& arguments,
                                         const WantedTypes& wanted) {
  if (arguments.validate == "none") return nullptr;
  if (!arguments.validate.empty()) {
    return open(arguments.data, arguments.validate, Split::test, wanted);
  }
  if (!has_test_split(arguments.data.spec)) return nullptr;
  return open(arguments.data, arguments.data.spec, Split::test, wanted);
}

/// The first name of the tie that holds `name`: a follower trains when its leader does.
const std::string& leader_of(const std::string& name,
                             const std::vector<std::vector<std::string>>& tied) {
  for (const std::vector<std::string>& group : tied) {
    if (std::ranges::find(group, name) != group.end()) return group.front();
  }
  return name;
}

/// Tells how training goes: text or JSON lines.
class Report {
 public:
  explicit Report(const TrainArguments& arguments) : arguments_(arguments) {}

  void start(const Model& model, const TrainStep& step, const TrainOptions& options) const {
    std::vector<std::string> frozen;
    const auto& trained = step.parameter_names();
    for (const Value* value : model.graph().initializers()) {
      const std::string& leader = leader_of(value->name(), arguments_.tied);
      if (is_float(value->dtype()) && std::ranges::find(trained, leader) == trained.end()) {
        frozen.push_back(value->name());
      }
    }
    if (arguments_.json) {
      print_json({{"event", "start"},
                  {"loss_name", options.loss.name},
                  {"trainable", trained},
                  {"frozen", frozen},
                  {"parameters", step.parameter_count()}});
      return;
    }
    if (verbosity().quiet) return;
    print_train_summary(std::cout, model, step, frozen, options);
    std::cout.flush();
  }

  void epoch(const EpochReport& report, const std::optional<Evaluation>& validation) const {
    if (arguments_.json) {
      print_json(epoch_json(report, validation));
      return;
    }
    if (verbosity().quiet) return;
    const std::string head = text("epoch ", report.epoch, '/', arguments_.epochs, ": ");
    std::string line = "loss " + fixed(report.loss, 4);
    if (report.accuracy) line += ", accuracy " + percent(*report.accuracy);
    if (validation) {
      line += "; validation loss " + fixed(validation->loss, 4);
      if (validation->accuracy) line += ", accuracy " + percent(*validation->accuracy);
    }
    line += "; " + fixed(report.seconds, 1) + " s";
    std::cout << head << wrapped(line, head.size(), text_columns()) << std::endl;
  }

  void end(const TrainStep& step) const {
    if (arguments_.json) {
      print_json({{"event", "end"},
                  {"out", arguments_.out},
                  {"updates", step.updates()},
                  {"interrupted", stop_asked != 0}});
    } else if (!verbosity().quiet) {
      std::cout << "wrote " << arguments_.out << std::endl;
    }
    if (stop_asked != 0) {
      std::cerr << "graft: interrupted after " << step.updates() << " updates; saved "
                << arguments_.out << std::endl;
    }
  }

 private:
  static nlohmann::ordered_json epoch_json(const EpochReport& report,
                                           const std::optional<Evaluation>& validation) {
    nlohmann::ordered_json line{{"event", "epoch"}, {"epoch", report.epoch}, {"loss", report.loss}};
    if (report.accuracy) line["accuracy"] = *report.accuracy;
    if (validation) {
      line["validation_loss"] = validation->loss;
      if (validation->accuracy) line["validation_accuracy"] = *validation->accuracy;
    }
    line["samples"] = report.samples;
    line["seconds"] = report.seconds;
    return line;
  }

  const TrainArguments& arguments_;
};

void fit(const TrainArguments& arguments, Trainer& trainer, DataLoader& loader,
         DataLoader* validation, const Report& report) {
  ProgressBar bar(!verbosity().quiet);
  trainer.fit(loader, {.epochs = arguments.epochs,
                       .on_step =
                           [&](const Progress& progress) {
                             bar.show(progress);
                             return stop_asked == 0;
                           },
                       .on_epoch =
                           [&](const EpochReport& epoch) {
                             bar.clear();
                             std::optional<Evaluation> measured;
                             if (validation != nullptr && stop_asked == 0) {
                               measured = trainer.evaluate(
                                   *validation, bar.counting("validation", *validation,
                                                             [] { return stop_asked == 0; }));
                               bar.clear();
                             }
                             if (stop_asked != 0) measured.reset();  // of a part of the data
                             report.epoch(epoch, measured);
                             return stop_asked == 0;
                           }});
}

ExitCode train(const TrainArguments& arguments) {
  apply(arguments.compute);
  const std::vector<Transform> transforms = training_transforms(arguments);
  Model model = onnx::load(arguments.model);
  check_writable(model, arguments.out);
  outlive_readers();
  end_when_interrupted();
  const WantedTypes wanted = wanted_types(model, arguments.loss.output);
  const std::shared_ptr<Dataset> dataset =
      open(arguments.data, arguments.data.spec, Split::train, wanted);
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  const TrainOptions options = make_options(arguments, loss, dataset->size());
  const std::int64_t batch = arguments.data.batch;
  check_data_fits(model, loss, options.output, *dataset, batch);
  DataLoader loader(
      dataset, {.batch = batch, .shuffle = true, .seed = arguments.seed, .transforms = transforms});
  std::optional<DataLoader> validation;
  if (const std::shared_ptr<Dataset> held_back = open_validation(arguments, wanted)) {
    check_data_fits(model, loss, options.output, *held_back, batch);
    validation.emplace(held_back,
                       LoaderOptions{.batch = batch, .transforms = normalization(arguments.data)});
  }

  Trainer trainer(model, options);
  const Report report(arguments);
  report.start(model, trainer.train_step(), options);
  stop_when_interrupted();
  fit(arguments, trainer, loader, validation ? &*validation : nullptr, report);
  save_model(model, arguments.out);
  report.end(trainer.train_step());
  return stop_asked != 0 ? interrupted : ok;
}

}  // namespace

Run add_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  add_arguments(app, *arguments);
  return [arguments] { return train(*arguments); };
}

}  // namespace graft::cli
