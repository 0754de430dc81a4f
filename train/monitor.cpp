#include "train/monitor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace graft {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

bool smaller_is_better(const std::string& name) {
  constexpr std::array<std::string_view, 4> kErrors{"loss", "mae", "rmse", "edit_distance"};
  return std::ranges::any_of(kErrors, [&](std::string_view e) { return name.ends_with(e); });
}

const double* find(const Numbers& numbers, std::string_view name) {
  const auto at = std::ranges::find(numbers, name, &Numbers::value_type::first);
  return at == numbers.end() ? nullptr : &at->second;
}

void check_patience(std::string_view who, int patience) {
  if (patience < 1) {
    fail(ErrorKind::argument, who, ": patience is ", patience, ", wanted at least 1 epoch");
  }
}

void check_amount(std::string_view who, std::string_view what, double amount) {
  if (!(amount >= 0.0) || !std::isfinite(amount)) {
    fail(ErrorKind::argument, who, ": ", what, " is ", amount,
         ", wanted a finite number of at least 0");
  }
}

/// Where no target counted, a loss of 0 stands for none.
bool is_of_nothing(const std::string& name, const EpochReport& report) {
  return name == "validation_loss" && report.validation->weight == 0.0 &&
         report.validation->loss == 0.0;
}

/// An epoch, or a number of them, of a file. Throws Error{io} where it is none.
int epochs(const std::map<std::string, double>& state, const std::string& key) {
  const auto at = state.find(key);
  if (at == state.end()) return 0;
  constexpr int kMost = std::numeric_limits<int>::max() / 2;  // more are counted from there on
  if (!(at->second >= 0.0 && at->second <= kMost)) {
    fail(ErrorKind::io, "the state of a callback has ", key, " ", at->second, ", wanted 0 to ",
         kMost, " epochs");
  }
  return static_cast<int>(at->second);
}

/// Nothing was done of it, here or in a run that is resumed.
bool is_new(const Run& run) {
  return run.position.epoch == 0 && run.position.batch == 0;
}

}  // namespace

Numbers numbers_of(const Evaluation& evaluation) {
  Numbers numbers{{"validation_loss", evaluation.loss}};
  if (evaluation.accuracy) numbers.emplace_back("validation_accuracy", *evaluation.accuracy);
  for (const auto& [name, value] : evaluation.metrics) {
    numbers.emplace_back("validation_" + name, value);
  }
  return numbers;
}

Numbers numbers_of(const EpochReport& report) {
  Numbers numbers{{"loss", report.loss}};
  if (report.accuracy) numbers.emplace_back("accuracy", *report.accuracy);
  if (report.validation) {
    for (auto& pair : numbers_of(*report.validation)) numbers.push_back(std::move(pair));
  }
  return numbers;
}

bool Monitor::improves(const EpochReport& report, double least_change) {
  const Numbers numbers = numbers_of(report);
  if (name_.empty()) {
    for (const char* name : {"validation_accuracy", "validation_loss", "loss"}) {
      if (name_.empty() && find(numbers, name) != nullptr) name_ = name;
    }
  }
  const double* const found = find(numbers, name_);
  if (found == nullptr) {
    std::string valid;
    for (const auto& [name, value] : numbers) valid += (valid.empty() ? "" : ", ") + name;
    fail(ErrorKind::argument, "no '", name_, "' is measured; valid here: ", valid);
  }
  const bool is_smaller_better = smaller_is_better_.value_or(smaller_is_better(name_));
  const double now =
      is_of_nothing(name_, report) ? std::numeric_limits<double>::quiet_NaN() : *found;
  const double gain = !best_ ? 0.0 : (is_smaller_better ? *best_ - now : now - *best_);
  const bool is_first = !best_ || (std::isnan(*best_) && !std::isnan(now));
  if (!is_first && !(gain > least_change)) {
    ++waited_;
    return false;
  }
  waited_ = 0;
  best_ = now;
  best_epoch_ = report.epoch;
  return true;
}

std::map<std::string, double> Monitor::state() const {
  if (!best_) return {};
  return {{"best", *best_}, {"best_epoch", best_epoch_}, {"waited", waited_}};
}

void Monitor::load_state(const std::map<std::string, double>& state) {
  if (!state.contains("best")) return;
  best_epoch_ = epochs(state, "best_epoch");
  waited_ = epochs(state, "waited");
  best_ = state.at("best");
}

EarlyStopping::EarlyStopping(Options options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.smaller_is_better) {
  check_patience("early stopping", options_.patience);
  check_amount("early stopping", "least_change", options_.least_change);
}

/// The run that is resumed may have ended so.
void EarlyStopping::on_start(Run& run) {
  if (is_new(run)) monitor_ = Monitor(options_.monitor, options_.smaller_is_better);
  run.stops |= has_stopped();
}

void EarlyStopping::on_epoch(Run& run, const EpochReport& report) {
  monitor_.improves(report, options_.least_change);
  run.stops |= has_stopped();
}

ReduceOnPlateau::ReduceOnPlateau(Options options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.smaller_is_better) {
  check_patience("reduce on plateau", options_.patience);
  check_amount("reduce on plateau", "least_change", options_.least_change);
  check_amount("reduce on plateau", "floor", options_.floor);
  if (!(options_.factor > 0.0F && options_.factor < 1.0F)) {
    fail(ErrorKind::argument, "reduce on plateau: factor is ", options_.factor,
         ", wanted a number between 0 and 1");
  }
}

void ReduceOnPlateau::on_start(Run& run) {
  if (is_new(run)) monitor_ = Monitor(options_.monitor, options_.smaller_is_better);
}

void ReduceOnPlateau::on_epoch(Run& run, const EpochReport& report) {
  monitor_.improves(report, options_.least_change);
  if (monitor_.waited() < options_.patience) return;
  monitor_.wait_anew();
  TrainStep& step = run.trainer.train_step();
  const float now = step.base_learning_rate();
  step.set_base_learning_rate(std::max(now * options_.factor, std::min(now, options_.floor)));
}

}  // namespace graft
