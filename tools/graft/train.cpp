#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
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
#include "tools/graft/verb.h"
#include "train/checkpoint.h"
#include "train/data_spec.h"
#include "train/progress_bar.h"
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

/// The first name of the tie that holds `name`: a follower trains when its leader does.
const std::string& leader_of(const std::string& name,
                             const std::vector<std::vector<std::string>>& tied) {
  for (const std::vector<std::string>& group : tied) {
    if (std::ranges::find(group, name) != group.end()) return group.front();
  }
  return name;
}

/// "0.05": the shortest digits that are this number.
nlohmann::ordered_json shortest(float number) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return nlohmann::ordered_json::parse(buffer.data(), end);
}

/// Tells how training goes: text or JSON lines.
class Report {
 public:
  explicit Report(const TrainArguments& arguments) : arguments_(arguments) {}

  void start(const Model& model, const TrainStep& step, const TrainOptions& options,
             const std::string& why) const {
    std::vector<std::string> frozen;
    const auto& trained = step.parameter_names();
    for (const Value* value : model.graph().initializers()) {
      const std::string& leader = leader_of(value->name(), arguments_.tied);
      if (is_float(value->dtype()) && std::ranges::find(trained, leader) == trained.end()) {
        frozen.push_back(value->name());
      }
    }
    const float rate = learning_rate(*options.optimizer);
    if (arguments_.json) {
      print_json({{"event", "start"},
                  {"loss_name", options.loss.name},
                  {"optimizer", name(*options.optimizer)},
                  {"learning_rate", shortest(rate)},
                  {"schedule", arguments_.schedule.name},
                  {"warmup", options.schedule.warmup},
                  {"trainable", trained},
                  {"frozen", frozen},
                  {"parameters", step.parameter_count()}});
      return;
    }
    std::cout << "loss " << options.loss.name << ", optimizer " << name(*options.optimizer)
              << " with rate " << rate << ' ' << arguments_.schedule.name;
    if (options.schedule.warmup > 0) std::cout << ", warm-up " << options.schedule.warmup;
    if (!why.empty()) std::cout << " (" << why << ")";
    std::cout << "; training " << with_commas(step.parameter_count()) << " numbers in "
              << trained.size() << " parameters:";
    for (const std::string& name : trained) std::cout << ' ' << name;
    if (!frozen.empty()) std::cout << "; not training:";
    for (const std::string& name : frozen) std::cout << ' ' << name;
    std::cout << std::endl;
  }

  void folder(const RunFolder& folder, bool is_resumed) const {
    if (arguments_.json) {
      print_json({{"event", "run"}, {"run", folder.path().string()}, {"resumed", is_resumed}});
    } else {
      std::cout << (is_resumed ? "going on with run " : "run ") << folder.path().string()
                << std::endl;
    }
  }

  void before(const Evaluation& validation) const {
    if (arguments_.json) {
      nlohmann::ordered_json line{{"event", "validation"}, {"epoch", 0}};
      put(validation, line);
      print_json(line);
      return;
    }
    std::cout << "before: " << measured(validation) << std::endl;
  }

  void epoch(const EpochReport& report) const {
    if (arguments_.json) {
      print_json(epoch_json(report));
      return;
    }
    std::cout << "epoch " << report.epoch << '/' << arguments_.epochs << ": loss "
              << fixed(report.loss, 4);
    if (report.accuracy) std::cout << ", accuracy " << percent(*report.accuracy);
    if (report.validation) std::cout << "; " << measured(*report.validation);
    std::cout << "; " << fixed(report.seconds, 1) << " s" << std::endl;
  }

  /// Says what training has done to the model.
  void compare(const Evaluation& before, const Evaluation& after) const {
    const bool is_worse = before.accuracy && after.accuracy ? *after.accuracy < *before.accuracy
                                                            : after.loss > before.loss;
    if (!is_worse) return;
    std::cerr << "graft: warning: training made the model worse: " << measured(before)
              << " before, " << measured(after) << " after; try a smaller --lr, or --keep best"
              << std::endl;
  }

  void end(const TrainStep& step) const {
    if (arguments_.json) {
      print_json({{"event", "end"},
                  {"out", arguments_.out},
                  {"updates", step.updates()},
                  {"interrupted", stop_asked()}});
    } else {
      std::cout << "wrote " << arguments_.out << std::endl;
    }
    if (stop_asked()) {
      std::cerr << "graft: interrupted after " << step.updates() << " updates; saved "
                << arguments_.out << std::endl;
    }
  }

 private:
  static std::string measured(const Evaluation& validation) {
    std::string all = "validation loss " + fixed(validation.loss, 4);
    if (validation.accuracy) all += ", accuracy " + percent(*validation.accuracy);
    for (const auto& [name, value] : validation.metrics) all += ", " + name + " " + fixed(value, 4);
    return all;
  }

  static void put(const Evaluation& validation, nlohmann::ordered_json& line) {
    for (const auto& [name, value] : numbers_of(validation)) line[name] = value;
  }

  static nlohmann::ordered_json epoch_json(const EpochReport& report) {
    nlohmann::ordered_json line{{"event", "epoch"}, {"epoch", report.epoch}, {"loss", report.loss}};
    if (report.accuracy) line["accuracy"] = *report.accuracy;
    if (report.validation) put(*report.validation, line);
    line["samples"] = report.samples;
    line["seconds"] = report.seconds;
    return line;
  }

  const TrainArguments& arguments_;
};

/// Prints what the report says of it; remembers the first and the last measurement.
class Teller : public Callback {
 public:
  explicit Teller(const Report& report) : report_(report) {}

  void on_step(graft::Run& /*run*/, const Progress& progress) override { bar_.show(progress); }
  void on_validation(graft::Run& run, const Evaluation& validation) override {
    if (run.position.epoch == 0) report_.before(validation);
  }
  void on_epoch(graft::Run& run, const EpochReport& epoch) override {
    bar_.clear();
    report_.epoch(epoch);
    before_ = run.position.before;
    after_ = epoch.validation;
  }
  void on_end(graft::Run& /*run*/) override {
    bar_.clear();
    if (before_ && after_) report_.compare(*before_, *after_);
  }
  void on_error(graft::Run& /*run*/, const Error& /*error*/) override { bar_.clear(); }
  void problem(const std::string& text) {
    bar_.clear();
    has_problems_ = true;
    std::cerr << "graft: warning: " << text << "; training goes on" << std::endl;
  }
  bool has_problems() const { return has_problems_; }

 private:
  const Report& report_;
  ProgressBar bar_;
  std::optional<Evaluation> before_;
  std::optional<Evaluation> after_;
  bool has_problems_ = false;
};

/// What the options came to where the command left them open.
nlohmann::ordered_json resolved(const TrainArguments& arguments, const TrainOptions& options,
                                const std::string& normalize) {
  nlohmann::ordered_json all{
      {"model", std::filesystem::absolute(arguments.model).string()},
      {"out", std::filesystem::absolute(arguments.out).string()},
      {"loss", options.loss.name},
      {"normalize", normalize.empty() ? arguments.data.normalize : normalize},
      {"optimizer", name(*options.optimizer)},
      {"lr", shortest(learning_rate(*options.optimizer))},
      {"warmup", options.schedule.warmup},
      {"threads", thread_count()}};
  if (const SGD* const sgd = std::get_if<SGD>(&*options.optimizer)) {
    all["momentum"] = shortest(sgd->momentum);
  }
  for (const std::vector<std::string>& names : arguments.tied) {
    std::string list;
    for (const std::string& one : names) list += (list.empty() ? "" : ",") + one;
    all["tied"].push_back(list);
  }
  return all;
}

/// One training with what belongs to it.
struct Training {
  const TrainArguments& arguments;
  Model& model;
  Trainer trainer;
  Report report;
  std::shared_ptr<Teller> teller = std::make_shared<Teller>(report);
  std::shared_ptr<Checkpoint> checkpoint = {};
  std::filesystem::path start = {};

  std::vector<std::shared_ptr<Callback>> callbacks(const RunFolder* folder) {
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

  void save() {
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

  void fit(DataLoader& loader, DataLoader* validation, const RunFolder* folder) {
    const FitOptions options{.epochs = arguments.epochs,
                             .validation = validation,
                             .callbacks = callbacks(folder),
                             .goes_on = [] { return !stop_asked(); },
                             .on_problem = [&](const std::string& text) { teller->problem(text); },
                             .resume = start,
                             .measure_first = true};
    try {
      trainer.fit(loader, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      save_last_good(error);
    }
    if (arguments.keep == "best" && !stop_asked())
      take(checkpoint == nullptr ? "" : checkpoint->best());
    save();
  }
};

ExitCode train(const CLI::App& app, TrainArguments arguments) {
  apply(arguments.compute);
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
    arguments.optimizer.lr = find_rate_for(arguments, loss, model, loader);
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
                    .report = Report(arguments)};
  Trainer& trainer = training.trainer;
  for (const std::string& metric : arguments.metrics) trainer.add_metric(metric_from_name(metric));
  training.report.start(model, trainer.train_step(), options, why);
  if (arguments.dry_run) return dry_run(trainer, loader, arguments);
  std::optional<RunFolder> folder;
  if (!arguments.run.none || !arguments.run.folder.empty() || !arguments.run.resumed.empty()) {
    folder.emplace(arguments.run, arguments.model);
    if (arguments.run.resumed.empty()) {
      folder->write_config(settings_of(app, resolved(arguments, options, said)));
    }
    training.report.folder(*folder, !arguments.run.resumed.empty());
  }
  stop_when_interrupted();
  leave_notes(arguments, options, dataset->info(), model);
  training.fit(loader, validation ? &*validation : nullptr, folder ? &*folder : nullptr);
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
