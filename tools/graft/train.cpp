#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/parallel.h"
#include "io/onnx.h"
#include "tools/graft/defaults.h"
#include "tools/graft/dry_run.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/ranks.h"
#include "tools/graft/run_settings.h"
#include "tools/graft/signals.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/train_report.h"
#include "tools/graft/verb.h"
#include "train/checkpoint.h"
#include "train/data_parallel.h"
#include "train/data_spec.h"
#include "train/monitor.h"
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

/// What a rank gets of a batch; the loader refuses a batch that is too small.
std::int64_t part_of_batch(const TrainArguments& arguments, const Shard& shard) {
  return std::max<std::int64_t>(1, arguments.data.batch / shard.count);
}

/// Says which of the two data sets does not fit.
void check_validation_fits(const TrainArguments& arguments, const Model& model, const Loss& loss,
                           const Dataset& held_back, std::int64_t batch) {
  try {
    check_data_fits(model, loss, arguments.loss.output, held_back, batch);
  } catch (const Error& error) {
    fail(error.kind(), "the data to measure with, ",
         arguments.validate.empty() ? "the test split of --data"
                                    : "--validate " + arguments.validate,
         ": ", error.what());
  }
}

/// Of several ranks, each measures a part, whose loss and accuracy can be added up; metrics see all
/// samples.
std::optional<DataLoader> validation_of(const TrainArguments& arguments, const WantedTypes& wanted,
                                        const Model& model, const Loss& loss, const Shard& shard) {
  const std::shared_ptr<Dataset> held_back = open_validation(arguments, wanted);
  if (held_back == nullptr) return std::nullopt;
  check_validation_fits(arguments, model, loss, *held_back, part_of_batch(arguments, shard));
  const bool is_shared = arguments.metrics.empty() && held_back->size() >= shard.count;
  return DataLoader(held_back, {.batch = arguments.data.batch,
                                .shard = is_shared ? shard : Shard{},
                                .equal_shards = false,
                                .transforms = normalization(arguments.data)});
}

/// What the options came to where the command left them open.
nlohmann::ordered_json resolved(const TrainArguments& arguments, const TrainOptions& options,
                                const std::string& normalize) {
  nlohmann::ordered_json all{
      {"model", std::filesystem::absolute(arguments.model).string()},
      {"out", std::filesystem::absolute(arguments.out).string()},
      {"data", absolute_spec(arguments.data.spec)},
      {"loss", arguments.loss.name == "auto" ? options.loss.name : arguments.loss.name},
      {"normalize", normalize.empty() ? arguments.data.normalize : normalize},
      {"optimizer", arguments.optimizer.name},
      {"lr", shortest_json(learning_rate(*options.optimizer))},
      {"warmup", options.schedule.warmup},
      {"threads", thread_count()}};
  if (const SGD* const sgd = std::get_if<SGD>(&*options.optimizer)) {
    all["momentum"] = shortest_json(sgd->momentum);
  }
  if (!arguments.validate.empty()) all["validate"] = absolute_spec(arguments.validate);
  if (!arguments.data.resize.empty()) all["resize"] = arguments.data.resize;
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
  Communicator& ranks;
  const bool is_first = ranks.rank() == 0;  ///< which writes
  std::shared_ptr<Teller> teller = std::make_shared<Teller>(report, validation);
  std::shared_ptr<Checkpoint> checkpoint = {};

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

  /// What is written is what was measured. Of several ranks, the first writes.
  void save() {
    if (!is_first) return;
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
                             .resume = arguments.run.start(),
                             .measure_first = true};
    try {
      trainer.fit(loader, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric || !is_first) throw;
      save_last_good(error);
    }
    if (any_of_ranks(stop_asked(), ranks)) ask_to_stop();
    if (stop_asked() && trainer.train_step().updates() == 0) return;  // the model is as it was
    const bool wants_best = is_first && arguments.keep == "best" && !stop_asked();
    const bool has_best = wants_best && take(checkpoint->best());
    save();
    if (wants_best && !has_best) {
      fail(ErrorKind::io, checkpoint->best().string(), " is gone: ", arguments.out,
           " has the weights of the last epoch in place of the best");
    }
  }
};

/// Null where nothing is kept. `said`: what the command says of normalization.
std::unique_ptr<RunFolder> open_folder(const CLI::App& app, const TrainArguments& arguments,
                                       const TrainOptions& options, const std::string& said) {
  if (!arguments.run.is_kept()) return nullptr;
  auto folder = std::make_unique<RunFolder>(arguments.run, arguments.model);
  folder->write_config(settings_of(app, resolved(arguments, options, said)));
  return folder;
}

/// Throws if a run's folder is missing, of which --keep best takes weights, or for which alone
/// --monitor says what is best.
void check_keeping(const TrainArguments& arguments) {
  if (arguments.run.is_kept()) return;
  if (arguments.keep == "best") {
    fail(ErrorKind::argument,
         "--keep best takes the weights from the run's folder; name one by "
         "--run, or leave out --no-run");
  }
  const bool is_watched = arguments.early_stopping > 0 || arguments.reduce_on_plateau > 0;
  if (arguments.monitor.empty() || is_watched) return;
  fail(ErrorKind::argument,
       "--monitor chooses the best epoch of a run's folder, and what --early-stopping and "
       "--reduce-on-plateau look at; this run has none of them");
}

/// Throws if what is to be monitored is not measured.
void check_monitor(const TrainArguments& arguments, const Loss& loss, bool has_validation) {
  if (arguments.monitor.empty()) return;
  EpochReport epoch;
  if (has_class_targets(loss)) epoch.accuracy = 0.0;
  if (has_validation) {
    epoch.validation = Evaluation{.accuracy = epoch.accuracy};
    for (const std::string& name : arguments.metrics) {
      epoch.validation->metrics.emplace_back(name, 0.0);
    }
  }
  std::vector<std::string> measured;
  for (const auto& [name, number] : numbers_of(epoch)) measured.push_back(name);
  if (std::ranges::find(measured, arguments.monitor) != measured.end()) return;
  fail(ErrorKind::argument, "--monitor: no '", arguments.monitor,
       "' is measured; valid here: ", joined(measured));
}

/// Of several ranks, each finds it alone on whole batches; that of the first counts.
float rate_for(const TrainArguments& arguments, const Loss& loss, Model& model, DataLoader loader,
               Communicator& ranks) {
  float rate = find_rate_for(arguments, loss, model, loader).rate;
  ranks.broadcast(std::as_writable_bytes(std::span(&rate, 1)), 0);
  return rate;
}

ExitCode train(const CLI::App& app, TrainArguments arguments) {
  apply(arguments.compute);
  const std::shared_ptr<Communicator> joined = join_ranks(arguments.compute.threads == 0);
  Communicator& ranks = or_alone(joined);
  check_keeping(arguments);
  Model model = onnx::load(arguments.model);
  check_writable(model, arguments.out);
  outlive_readers();
  end_when_interrupted(ranks.rank() == 0);
  const std::string said = arguments.data.normalize;
  complete_data(model, arguments.data);
  const std::vector<Transform> transforms = training_transforms(arguments);
  WantedTypes wanted = wanted_types(model, arguments.loss);
  const std::shared_ptr<Dataset> dataset =
      open(arguments.data, arguments.data.spec, Split::train, wanted);
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  const bool has_numbers = is_float(dataset->info().target.dtype);
  wanted.csv_target = has_numbers ? CsvTarget::number : CsvTarget::class_index;
  const std::string why =
      choose_defaults(model, total_updates(arguments, dataset->size()), arguments);
  const Shard shard{.index = ranks.rank(), .count = ranks.size()};
  say_what_is_judged(loss, check_data_fits(model, loss, arguments.loss.output, *dataset,
                                           part_of_batch(arguments, shard)));
  LoaderOptions batches{.batch = arguments.data.batch,
                        .shuffle = true,
                        .seed = arguments.seed,
                        .transforms = transforms};
  if (arguments.optimizer.finds_lr) {
    arguments.optimizer.lr = rate_for(arguments, loss, model, DataLoader(dataset, batches), ranks);
  }
  batches.shard = shard;
  DataLoader loader(dataset, batches);
  TrainOptions options = make_options(arguments, loss, dataset->size());
  options.communicator = joined;
  std::optional<DataLoader> validation = validation_of(arguments, wanted, model, loss, shard);
  Training training{.arguments = arguments,
                    .model = model,
                    .trainer = Trainer(model, options),
                    .report = TrainReport(arguments),
                    .validation = validation ? &*validation : nullptr,
                    .ranks = ranks};
  Trainer& trainer = training.trainer;
  for (const std::string& metric : arguments.metrics) {
    trainer.add_metric(metric_from_name(metric, loss.blank));
  }
  check_monitor(arguments, loss, validation.has_value());
  training.report.start(model, trainer.train_step(), options, why);
  if (arguments.dry_run) return dry_run(trainer, loader, arguments);
  const std::unique_ptr<RunFolder> folder =
      training.is_first ? open_folder(app, arguments, options, said) : nullptr;
  if (folder != nullptr) {
    training.report.folder(folder->path().string(), !arguments.run.resumed.empty());
  }
  stop_when_interrupted();
  leave_notes(arguments, options, dataset->info(), model);
  training.fit(loader, folder.get());
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
