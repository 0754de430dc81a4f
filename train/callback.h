#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "train/evaluator.h"

namespace graft {

class Callback;
class Trainer;

/// What one step did to one batch.
struct StepReport {
  /// The loss of the batch before its update.
  double loss = 0.0;
  /// The share of right predictions before the update; absent for losses without classes.
  std::optional<double> accuracy;
  std::int64_t samples = 0;
  /// Predictions that the accuracy counts: none for losses without classes, or where all targets
  /// are those of `Loss::ignore_index`.
  std::int64_t judged = 0;
  /// What the loss counts for among those of other batches (LossMean). 0 where no target counts:
  /// the loss is NaN then, and its gradients are 0.
  double weight = 0.0;
};

/// What one epoch did.
struct EpochReport {
  int epoch = 0;  ///< from 1
  /// Means over what was judged in the epoch, before the update of its batch (LossMean).
  double loss = 0.0;
  std::optional<double> accuracy;
  std::int64_t samples = 0;
  double seconds = 0.0;
  /// After the epoch, when validation data were given.
  std::optional<Evaluation> validation;
};

/// Where training stands, for a progress bar.
struct Progress {
  int epoch = 0;  ///< from 1
  int epochs = 0;
  std::int64_t batch = 0;  ///< from 1
  std::int64_t batches = 0;
  StepReport step;
  /// Of the step's update.
  std::optional<double> learning_rate = {};
  /// Done with this step.
  std::int64_t updates = 0;
};

/// The place that a run has reached, and the sums of the epoch that is going on. A checkpoint holds
/// it, so that an interrupted epoch ends with the report that it would have had.
struct RunPosition {
  /// Whole epochs done, measured where there are data to measure on.
  int epoch = 0;
  /// Batches done of the next.
  std::int64_t batch = 0;
  /// What the loader calls the next: its order and what transforms draw follow from it.
  std::int64_t loader_epoch = 0;
  LossMean loss = {};
  double correct = 0.0;
  std::int64_t judged = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;
  /// The model before the first step, where it was measured.
  std::optional<Evaluation> before;
};

/// A call of Trainer::fit, as callbacks see it.
struct Run {
  Trainer& trainer;
  int epochs = 0;
  /// Of an epoch.
  std::int64_t batches = 0;
  const std::vector<std::shared_ptr<Callback>>& callbacks;
  RunPosition position = {};
  /// Asks training to end, after the step or in the midst of a measurement. What was reached stays.
  bool stops = false;
  /// Asks for `on_save` behind the step.
  bool saves = false;
  /// Told at once what goes wrong without ending the run, as a checkpoint that cannot be written.
  std::function<void(const std::string&)> on_problem = {};

  void report_problem(const std::string& problem) const {
    if (on_problem) on_problem(problem);
  }
};

/// Follows a run. Each function is called on the thread that trains; what it throws ends the run.
/// Those of several callbacks are called in the order in which they were given.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Before the first step; `run.position` is where a resumed run goes on.
  virtual void on_start(Run& run);
  virtual void on_step(Run& run, const Progress& progress);
  /// Asked behind each step: whether `on_step` has to see the model and the optimizer as the step
  /// leaves them, or may ask the run to stop or to save there. If no callback does, a card may be
  /// at the next step when `on_step` is called, so that it never waits for the host.
  virtual bool looks_at_step(const Run& run);
  /// After a step in which a callback asked for it, on any rank: Trainer::state then says what all
  /// ranks hold, until the next step.
  virtual void on_save(Run& run);
  /// After a measurement: before the first step (`run.position.epoch` is 0), and after each epoch.
  virtual void on_validation(Run& run, const Evaluation& evaluation);
  /// After a whole epoch; `run.position` is the start of the next.
  virtual void on_epoch(Run& run, const EpochReport& report);
  /// When all callbacks have seen the epoch, so that what they keep can be stored.
  virtual void after_epoch(Run& run, const EpochReport& report);
  /// After a checkpoint was written.
  virtual void on_checkpoint(Run& run, const std::filesystem::path& path);
  /// After the last step, also when the run was asked to stop, perhaps in the midst of an epoch.
  virtual void on_end(Run& run);
  /// In place of `on_end` when an error ends the run. Another exception comes as an Error{argument}
  /// that says what that says, if it is a std::exception.
  virtual void on_error(Run& run, const Error& error);

  /// Under which checkpoints keep its numbers; empty: they keep none. Of callbacks with one name,
  /// the second has "#2" behind it there, and so on, in the order in which they were given.
  virtual std::string name() const { return {}; }
  /// The numbers without which it could not go on in a resumed run, by names without '/'.
  virtual std::map<std::string, double> state() const { return {}; }
  /// `state`: what `state()` gave.
  virtual void load_state(const std::map<std::string, double>& state);
};

}  // namespace graft
