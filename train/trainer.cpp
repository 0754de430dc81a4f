#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <utility>

#include "core/device/overlap.h"
#include "core/graph/model.h"
#include "train/data_parallel.h"
#include "train/seconds.h"

namespace graft {
namespace {

void add(const Loss& loss, const StepReport& step, RunPosition& position) {
  ++position.batch;
  position.loss.add(loss, step.loss, step.weight);
  position.correct += step.accuracy.value_or(0.0) * static_cast<double>(step.judged);
  position.judged += step.judged;
  position.samples += step.samples;
}

EpochReport report_of(const RunPosition& position) {
  EpochReport report;
  report.epoch = position.epoch + 1;
  report.samples = position.samples;
  report.seconds = position.seconds;
  report.loss = position.loss.value();
  if (position.judged > 0)
    report.accuracy = position.correct / static_cast<double>(position.judged);
  return report;
}

bool is_finite(const Tensor& tensor) {
  const Tensor host = tensor.to(cpu());
  bool found = true;
  visit_dtype(FloatTypes{}, host.dtype(), [&]<class T>() {
    found = std::ranges::all_of(host.values<const T>(), [](T x) { return std::isfinite(x); });
  });
  return found;
}

/// The exception that is being handled, as callbacks hear of it.
Error handled_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return {ErrorKind::argument, error.what()};
  } catch (...) {
    return {ErrorKind::argument, "an exception that is no std::exception"};
  }
}

/// While it lives, the model holds its averages, if the step keeps any.
class Averaged {
 public:
  explicit Averaged(TrainStep& step) : step_(step), were_used_(step.uses_averages()) {
    step_.use_averages(true);
  }
  ~Averaged() { step_.use_averages(were_used_); }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;

 private:
  TrainStep& step_;
  bool were_used_;
};

std::string cure(const TrainStep& step) {
  return text("; try a smaller learning rate (it was ", step.learning_rate(),
              ") or gradient clipping");
}

TrainOptions counting(TrainOptions options) {
  options.counts_correct = true;
  return options;
}

/// Absent where no prediction was judged at all.
std::optional<double> share(std::optional<std::int64_t> correct, std::int64_t judged) {
  if (!correct || judged == 0) return std::nullopt;
  return static_cast<double>(*correct) / static_cast<double>(judged);
}

/// Asks all of them: some remember what they answered.
bool any_looks_at_step(const Run& run) {
  bool any = false;
  for (const auto& callback : run.callbacks) any = callback->looks_at_step(run) || any;
  return any;
}

}  // namespace

Trainer::Trainer(Model& model, TrainOptions options)
    : model_(&model),
      loss_(options.loss),
      ranks_(&or_alone(options.communicator)),
      total_updates_(options.total_updates),
      accumulate_(options.accumulate),
      step_(model, counting(options)),
      evaluator_(model, {.loss = options.loss,
                         .output = options.output,
                         .device = options.device,
                         .fallback = options.fallback,
                         .parameters = step_.parameter_names(),
                         .communicator = options.communicator}),
      overlaps_(find_overlap(device(options.device)) != nullptr),
      finite_(finite_of(step_.parameter_names())) {}

StepReport Trainer::step(const Batch& batch) {
  return finish(start(batch));
}

Trainer::Started Trainer::start(const Batch& batch) {
  const std::int64_t samples = sample_count(batch);  // before the step changes anything
  const bool is_untrained = step_.updates() == 0;
  const double rate = step_.learning_rate();
  StartedStep step = batch.further_targets.empty() ? step_.start(batch.inputs, batch.target)
                                                   : step_.start(batch.inputs, targets_of(batch));
  const std::int64_t judged = has_class_targets(loss_) ? count_judged(loss_, batch.target) : 0;
  const double weight = mean_weight(loss_, batch.target, samples);
  return {std::move(step), samples, judged, weight, step_.updates(), rate, is_untrained};
}

StepReport Trainer::finish(const Started& started, const Run* run) const {
  StepReport report{.loss = started.step.loss(),
                    .accuracy = share(started.step.correct(), started.judged),
                    .samples = started.samples,
                    .judged = started.judged,
                    .weight = started.weight};
  if (ranks_->size() > 1) report = over_ranks(report, *ranks_);
  if (report.weight > 0.0 && !std::isfinite(report.loss)) {
    const std::string place = run == nullptr
                                  ? ""
                                  : text(" (epoch ", run->position.epoch + 1, ", batch ",
                                         run->position.batch + 1, " of ", run->batches, ")");
    fail(ErrorKind::numeric, "the loss is ", loss_text(report.loss), " in step ", started.updates,
         place,
         started.is_untrained
             ? "; look for values in the data or the weights that are not finite: "
               "with debug_nan (--debug-nan) the step names the node that makes the first"
             : cure(step_));
  }
  return report;
}

std::vector<EpochReport> Trainer::fit(DataLoader& loader, const FitOptions& options) {
  if (options.epochs < 0) {
    fail(ErrorKind::argument, "epochs is ", options.epochs, ", wanted at least 0");
  }
  if (std::ranges::find(options.callbacks, nullptr) != options.callbacks.end()) {
    fail(ErrorKind::argument, "a callback is null");
  }
  if (total_updates_ == 0) {
    const std::int64_t more = checked_multiply(options.epochs, loader.batches()) / accumulate_;
    step_.set_total_updates(
        std::min(step_.updates() + std::max<std::int64_t>(more, 1), kMostCounted));
  }
  Run run{.trainer = *this,
          .epochs = options.epochs,
          .batches = loader.batches(),
          .callbacks = options.callbacks,
          .on_problem = options.on_problem};
  run.position.loader_epoch = loader.epoch();
  if (!options.resume.empty()) resume(run, loader, options.resume);
  finite_ = finite_of(step_.parameter_names());
  try {
    std::vector<EpochReport> reports = train(run, loader, options);
    for (const auto& callback : options.callbacks) callback->on_end(run);
    return reports;
  } catch (...) {
    const Error error = handled_error();
    for (const auto& callback : options.callbacks) callback->on_error(run, error);
    throw;
  }
}

void Trainer::resume(Run& run, DataLoader& loader, const std::filesystem::path& path) {
  const TrainingState state = load_training_state(path);
  try {
    if (state.position.batch > run.batches) {
      fail(ErrorKind::argument, state.position.batch, " batches of an epoch are done, which has ",
           run.batches, ": the data or the batch are others");
    }
    step_.load_state(state.step);
    const std::int64_t epochs = run.epochs - state.position.epoch;
    const std::int64_t batches = epochs * run.batches - state.position.batch;
    const std::int64_t more = std::max<std::int64_t>(batches / accumulate_, 0);
    const std::int64_t wanted =
        std::min(std::max(state.step.total_updates, state.step.updates + more), kMostCounted);
    step_.set_total_updates(total_updates_ != 0 ? total_updates_ : wanted);
  } catch (const Error& error) {
    fail(error.kind(), "cannot resume from '", path.string(), "': ", error.what());
  }
  run.position = state.position;
  loader.set_epoch(state.position.loader_epoch);
  loader.skip(state.position.batch);
  const std::vector<std::string> names = names_of_state(run.callbacks);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto numbers = state.callbacks.find(names[i]);
    const bool has_any = !names[i].empty() && numbers != state.callbacks.end();
    if (has_any) run.callbacks[i]->load_state(numbers->second);
  }
}

std::vector<EpochReport> Trainer::train(Run& run, DataLoader& loader, const FitOptions& options) {
  const auto each = [&](const auto& call) {
    for (const auto& callback : options.callbacks) call(*callback);
  };
  step_.gather_state();  // a callback may store what there was before the first step
  each([&](Callback& callback) { callback.on_start(run); });
  const bool is_start = run.position.epoch == 0 && run.position.batch == 0;
  if (options.measure_first && options.validation != nullptr && is_start) {
    run.position.before = validate(run, options);
    if (run.position.before) {
      each([&](Callback& callback) { callback.on_validation(run, *run.position.before); });
    }
  }
  std::vector<EpochReport> reports;
  while (!run.stops && run.position.epoch < options.epochs) {
    bool is_whole = train_epoch(run, loader, options);
    step_.synchronize();
    require_finite();
    EpochReport report = report_of(run.position);
    if (is_whole && options.validation != nullptr) {
      report.validation = validate(run, options);
      is_whole = report.validation.has_value();
    }
    reports.push_back(report);
    if (is_whole) {
      run.position = {.epoch = run.position.epoch + 1,
                      .loader_epoch = loader.epoch(),
                      .before = run.position.before};
      if (report.validation) {
        each([&](Callback& callback) { callback.on_validation(run, *report.validation); });
      }
      each([&](Callback& callback) { callback.on_epoch(run, report); });
      each([&](Callback& callback) { callback.after_epoch(run, report); });
    }
    if (options.on_epoch && !options.on_epoch(report)) run.stops = true;
    decide_together(run);
  }
  return reports;
}

void Trainer::decide_together(Run& run) const {
  if (ranks_->size() == 1) return;
  const auto [stops, saves] = any_of_ranks({run.stops, run.saves}, *ranks_);
  run.stops = stops;
  run.saves = saves;
}

void Trainer::save_if_asked(Run& run) {
  if (!run.saves) return;
  run.saves = false;
  step_.gather_state();
  for (const auto& callback : run.callbacks) callback->on_save(run);
}

/// Whether the next step may start before this one is reported: only who waits for a device gains.
bool Trainer::may_report_late(const Run& run, const FitOptions& options) const {
  const bool is_looked_at = any_looks_at_step(run);
  return overlaps_ && ranks_->size() == 1 && !options.on_step && !is_looked_at;
}

void Trainer::report(Run& run, const FitOptions& options, const Started& started,
                     const std::function<double()>& seconds) {
  RunPosition& position = run.position;
  const StepReport report = finish(started, &run);
  add(loss_, report, position);
  position.seconds = seconds();
  const Progress progress{position.epoch + 1, run.epochs,     position.batch, run.batches, report,
                          started.rate,       started.updates};
  for (const auto& callback : options.callbacks) callback->on_step(run, progress);
  if (options.on_step && !options.on_step(progress)) run.stops = true;
  if (options.goes_on && !options.goes_on()) run.stops = true;
  decide_together(run);
}

bool Trainer::train_epoch(Run& run, DataLoader& loader, const FitOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&, before = run.position.seconds] { return before + seconds_since(begin); };
  run.position.loader_epoch = loader.epoch();
  std::optional<Started> unreported;
  for (const Batch& batch : loader) {
    const Started started = start(batch);
    if (unreported) report(run, options, *std::exchange(unreported, std::nullopt), seconds);
    if (!run.stops && may_report_late(run, options)) {
      unreported = started;
      continue;
    }
    report(run, options, started, seconds);
    if (run.stops) return false;
    save_if_asked(run);
  }
  if (unreported) report(run, options, *unreported, seconds);
  return !run.stops;
}

std::optional<Evaluation> Trainer::validate(Run& run, const FitOptions& options) {
  const auto goes_on = [&] {
    if (options.goes_on && !options.goes_on()) run.stops = true;
    return !run.stops;
  };
  const Evaluation evaluation = evaluate(*options.validation, goes_on);
  decide_together(run);
  if (run.stops) return std::nullopt;
  return evaluation;
}

std::vector<std::string> Trainer::finite_of(const std::vector<std::string>& names) const {
  std::vector<std::string> finite;
  std::ranges::copy_if(names, std::back_inserter(finite), [this](const std::string& name) {
    return is_finite(model_->graph().find(name)->initializer());
  });
  return finite;
}

void Trainer::require_finite() const {
  const std::vector<std::string> now = finite_of(finite_);
  const auto [lost, kept] = std::ranges::mismatch(finite_, now);
  if (lost == finite_.end()) return;
  fail(ErrorKind::numeric, "parameter '", *lost, "' holds numbers that are not finite after ",
       step_.updates(), " updates", cure(step_));
}

Evaluation Trainer::evaluate(DataLoader& loader, const std::function<bool()>& goes_on) {
  const Averaged averaged(step_);
  return require_finite(evaluator_.run(loader, goes_on));
}

Evaluation Trainer::evaluate(const Batch& batch) {
  const Averaged averaged(step_);
  return require_finite(evaluator_.run(batch));
}

Evaluation Trainer::require_finite(const Evaluation& evaluation) {
  if (!std::isfinite(evaluation.loss)) {
    fail(ErrorKind::numeric, "the loss on the data to measure with is ", loss_text(evaluation.loss),
         " after ", step_.updates(), " updates", cure(step_));
  }
  return evaluation;
}

void Trainer::add_metric(std::shared_ptr<Metric> metric) {
  evaluator_.add_metric(std::move(metric));
}

TrainingState Trainer::state(const Run& run) const {
  require_finite();
  TrainingState state{.step = step_.state(), .position = run.position};
  const std::vector<std::string> names = names_of_state(run.callbacks);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::map<std::string, double> numbers = run.callbacks[i]->state();
    if (!names[i].empty() && !numbers.empty()) state.callbacks[names[i]] = std::move(numbers);
  }
  return state;
}

}  // namespace graft
