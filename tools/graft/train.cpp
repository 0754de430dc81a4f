#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/parallel.h"
#include "io/onnx.h"
#include "tools/graft/defaults.h"
#include "tools/graft/dry_run.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/run_settings.h"
#include "tools/graft/signals.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/train_report.h"
#include "tools/graft/verb.h"
#include "train/checkpoint.h"
#include "train/data_spec.h"
#include "train/run_log.h"
#include "train/trainer.h"

namespace graft::cli {
namespace {

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

/// What the options came to where the command left them open.
nlohmann::ordered_json resolved(const TrainArguments& arguments, const TrainOptions& options,
                                const std::string& normalize) {
  nlohmann::ordered_json all{
      {"model", std::filesystem::absolute(arguments.model).string()},
      {"out", std::filesystem::absolute(arguments.out).string()},
      {"loss", arguments.loss.name == "auto" ? options.loss.name : arguments.loss.name},
      {"normalize", normalize.empty() ? arguments.data.normalize : normalize},
      {"optimizer", arguments.optimizer.name},
      {"lr", shortest_json(learning_rate(*options.optimizer))},
      {"warmup", options.schedule.warmup},
      {"threads", thread_count()}};
  if (const SGD* const sgd = std::get_if<SGD>(&*options.optimizer)) {
    all["momentum"] = shortest_json(sgd->momentum);
  }
  for (const std::vector<std::string>& names : arguments.parameters.tied) {
    all["tied"].push_back(joined(names, ","));
  }
  return all;
}

/// One training with what belongs to it.
struct Training {
  const TrainArguments& arguments;
  Model& model;
  Trainer trainer;
  TrainReport report;
  DataLoader* validation = nullptr;
  std::shared_ptr<Teller> teller = std::make_shared<Teller>(report, validation);
  std::shared_ptr<Checkpoint> checkpoint = {};
  std::filesystem::path start = {};

  std::vector<std::shared_ptr<Callback>> callbacks(RunFolder* folder) {
    std::vector<std::shared_ptr<Callback>> all{teller};
    if (arguments.early_stopping > 0) {
      all.push_back(std::make_shared<EarlyStopping>(EarlyStopping::Options{
          .patience = arguments.early_stopping, .monitor = arguments.monitor}));
    }
    if (arguments.reduce_on_plateau > 0) {
      all.push_back(std::make_shared<ReduceOnPlateau>(ReduceOnPlateau::Options{
          .patience = arguments.reduce_on_plateau, .monitor = arguments.monitor}));
    }
    if (folder == nullptr) return all;
    checkpoint = std::make_shared<Checkpoint>(
        folder->path(), CheckpointOptions{.minutes = arguments.run.checkpoint_minutes,
                                          .monitor = arguments.monitor});
    start = folder->start();
    all.push_back(std::make_shared<FolderKeeper>(*folder));
    all.push_back(checkpoint);
    all.push_back(std::make_shared<RunLog>(folder->path()));
    all.push_back(std::make_shared<TensorBoardLog>(folder->path()));
    return all;
  }

  /// Takes the weights of a checkpoint, if there is one.
  bool take(const std::filesystem::path& path) {
    std::error_code ignored;
    if (checkpoint == nullptr || !std::filesystem::exists(path, ignored)) return false;
    trainer.train_step().load_state(load_training_state(path).step);
    return true;
  }

  /// What is written is what was measured.
  void save() {
    trainer.train_step().use_averages(true);
    try {
      save_model(model, arguments.out);
    } catch (const Error& error) {
      if (checkpoint == nullptr) throw;
      fail(error.kind(), error.what(), "; nothing is lost: free the place, then --resume ",
           checkpoint->last().parent_path().string());
    }
  }

  /// After a loss or a parameter was not finite: what was good is written.
  [[noreturn]] void save_last_good(const Error& error) {
    if (!take(checkpoint == nullptr ? "" : checkpoint->last())) {
      fail(error.kind(), error.what(), "; nothing is written");
    }
    save();
    fail(error.kind(), error.what(), "; ", arguments.out, " has the weights of update ",
         trainer.train_step().updates(), ", the last that were stored");
  }

  void fit(DataLoader& loader, RunFolder* folder) {
    const FitOptions options{.epochs = arguments.epochs,
                             .validation = validation,
                             .callbacks = callbacks(folder),
                             .goes_on =
                                 [&] {
                                   teller->on_batch();
                                   return !stop_asked();
                                 },
                             .on_problem = [&](const std::string& text) { teller->problem(text); },
                             .resume = start,
                             .measure_first = true};
    try {
      trainer.fit(loader, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      save_last_good(error);
    }
    const bool wants_best = arguments.keep == "best" && !stop_asked();
    const bool has_best = wants_best && take(checkpoint->best());
    save();
    if (wants_best && !has_best) {
      fail(ErrorKind::io, checkpoint->best().string(), " is gone: ", arguments.out,
           " has the weights of the last epoch in place of the best");
    }
  }
};

ExitCode train(const CLI::App& app, TrainArguments arguments) {
  apply(arguments.compute);
  if (arguments.keep == "best" && !arguments.run.is_kept()) {
    fail(ErrorKind::argument,
         "--keep best takes the weights from the run's folder; name one by "
         "--run, or leave out --no-run");
  }
  Model model = onnx::load(arguments.model);
  check_writable(model, arguments.out);
  outlive_readers();
  end_when_interrupted();
  const std::string said = arguments.data.normalize;
  arguments.data.normalize =
      normalization_for(model, arguments.data.normalize, arguments.data.spec);
  const std::vector<Transform> transforms = training_transforms(arguments);
  const WantedTypes wanted = wanted_types(model, arguments.loss.output);
  const std::shared_ptr<Dataset> dataset =
      open(arguments.data, arguments.data.spec, Split::train, wanted);
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  const std::string why =
      choose_defaults(model, total_updates(arguments, dataset->size()), arguments);
  const std::int64_t batch = arguments.data.batch;
  say_what_is_judged(loss, check_data_fits(model, loss, arguments.loss.output, *dataset, batch));
  DataLoader loader(
      dataset, {.batch = batch, .shuffle = true, .seed = arguments.seed, .transforms = transforms});
  if (arguments.optimizer.finds_lr) {
    arguments.optimizer.lr = find_rate_for(arguments, loss, model, loader).rate;
  }
  const TrainOptions options = make_options(arguments, loss, dataset->size());
  std::optional<DataLoader> validation;
  if (const std::shared_ptr<Dataset> held_back = open_validation(arguments, wanted)) {
    check_data_fits(model, loss, arguments.loss.output, *held_back, batch);
    validation.emplace(held_back,
                       LoaderOptions{.batch = batch, .transforms = normalization(arguments.data)});
  }

  Training training{.arguments = arguments,
                    .model = model,
                    .trainer = Trainer(model, options),
                    .report = TrainReport(arguments),
                    .validation = validation ? &*validation : nullptr};
  Trainer& trainer = training.trainer;
  for (const std::string& metric : arguments.metrics) trainer.add_metric(metric_from_name(metric));
  training.report.start(model, trainer.train_step(), options, why);
  if (arguments.dry_run) return dry_run(trainer, loader, arguments);
  std::optional<RunFolder> folder;
  if (arguments.run.is_kept()) {
    folder.emplace(arguments.run, arguments.model);
    if (arguments.run.resumed.empty()) {
      folder->write_config(settings_of(app, resolved(arguments, options, said)));
    }
    training.report.folder(folder->path().string(), !arguments.run.resumed.empty());
  }
  stop_when_interrupted();
  leave_notes(arguments, options, dataset->info(), model);
  training.fit(loader, folder ? &*folder : nullptr);
  training.report.end(trainer.train_step());
  if (stop_asked()) return interrupted;
  return training.teller->has_problems() ? bad_input : ok;
}

}  // namespace

Run add_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  add_arguments(app, *arguments);
  return [&app, arguments] { return train(app, *arguments); };
}

}  // namespace graft::cli
