#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "core/graph/model.h"

namespace graft {
namespace {

/// Sums step reports into an epoch's.
class EpochSum {
 public:
  void add(const StepReport& step) {
    const auto samples = static_cast<double>(step.samples);
    loss_ += step.loss * samples;
    correct_ += step.accuracy.value_or(0.0) * samples;
    has_accuracy_ = step.accuracy.has_value();
    samples_ += step.samples;
  }

  EpochReport report(int epoch) const {
    EpochReport report;
    report.epoch = epoch;
    report.samples = samples_;
    report.seconds = seconds();
    if (samples_ == 0) return report;
    report.loss = loss_ / static_cast<double>(samples_);
    if (has_accuracy_) report.accuracy = correct_ / static_cast<double>(samples_);
    return report;
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  double loss_ = 0.0;
  double correct_ = 0.0;
  bool has_accuracy_ = false;
  std::int64_t samples_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool is_finite(const Tensor& tensor) {
  bool found = true;
  visit_dtype(FloatTypes{}, tensor.dtype(), [&]<class T>() {
    found = std::ranges::all_of(tensor.values<const T>(), [](T x) { return std::isfinite(x); });
  });
  return found;
}

}  // namespace

Trainer::Trainer(Model& model, TrainOptions options)
    : model_(&model),
      loss_(options.loss),
      total_updates_(options.total_updates),
      accumulate_(options.accumulate),
      step_(model, options),
      evaluator_(model, {.loss = options.loss,
                         .output = options.output,
                         .device = options.device,
                         .parameters = step_.parameter_names()}) {}

StepReport Trainer::step(const Batch& batch) {
  StepReport report;
  report.samples = batch.size;
  const bool is_untrained = step_.updates() == 0;
  report.loss = step_.run(batch.inputs, batch.target);
  if (!std::isfinite(report.loss)) {
    fail(ErrorKind::numeric, "the loss is ", report.loss, " in step ", step_.updates(),
         is_untrained ? "; look for values in the data or the weights that are not finite"
                      : "; try a smaller learning rate or gradient clipping");
  }
  if (has_class_targets(loss_)) {
    const Tensor& prediction = step_.prediction();
    const std::int64_t correct =
        count_correct(prediction, batch.target, class_axis(loss_, prediction.shape()));
    report.accuracy = static_cast<double>(correct) / static_cast<double>(batch.target.size());
  }
  return report;
}

std::vector<EpochReport> Trainer::fit(DataLoader& loader, const FitOptions& options) {
  if (options.epochs < 0) {
    fail(ErrorKind::argument, "epochs is ", options.epochs, ", wanted at least 0");
  }
  if (total_updates_ == 0) {
    const std::int64_t more = options.epochs * loader.batches() / accumulate_;
    step_.set_total_updates(step_.updates() + std::max<std::int64_t>(more, 1));
  }
  // Others may hold infinities on purpose: masks of attention.
  const std::vector<std::string> finite = finite_of(step_.parameter_names());
  std::vector<EpochReport> reports;
  bool goes_on = true;
  for (int epoch = 1; goes_on && epoch <= options.epochs; ++epoch) {
    EpochSum sum;
    std::int64_t done = 0;
    for (const Batch& batch : loader) {
      const double rate = step_.learning_rate();
      const StepReport step_report = step(batch);
      sum.add(step_report);
      if (options.on_step &&
          !options.on_step({epoch, options.epochs, ++done, loader.batches(), step_report, rate})) {
        goes_on = false;
        break;
      }
    }
    require_finite(finite);
    EpochReport report = sum.report(epoch);
    if (options.validation != nullptr) report.validation = evaluate(*options.validation);
    reports.push_back(report);
    if (options.on_epoch && !options.on_epoch(report)) goes_on = false;
  }
  return reports;
}

std::vector<std::string> Trainer::finite_of(const std::vector<std::string>& names) const {
  std::vector<std::string> finite;
  std::ranges::copy_if(names, std::back_inserter(finite), [this](const std::string& name) {
    return is_finite(model_->graph().find(name)->initializer());
  });
  return finite;
}

void Trainer::require_finite(const std::vector<std::string>& names) const {
  const std::vector<std::string> finite = finite_of(names);
  const auto [lost, kept] = std::ranges::mismatch(names, finite);
  if (lost == names.end()) return;
  fail(ErrorKind::numeric, "parameter '", *lost, "' holds numbers that are not finite after ",
       step_.updates(), " updates; try a smaller learning rate or gradient clipping");
}

Evaluation Trainer::evaluate(DataLoader& loader, const std::function<bool()>& goes_on) {
  const Evaluation evaluation = evaluator_.run(loader, goes_on);
  if (!std::isfinite(evaluation.loss)) {
    fail(ErrorKind::numeric, "the loss on the data to measure with is ", evaluation.loss, " after ",
         step_.updates(), " updates; try a smaller learning rate or gradient clipping");
  }
  return evaluation;
}

}  // namespace graft
