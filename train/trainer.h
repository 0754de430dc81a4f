#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "train/callback.h"
#include "train/evaluator.h"
#include "train/train_step.h"
#include "train/training_state.h"

namespace graft {

struct FitOptions {
  int epochs = 1;
  /// Evaluated after each epoch; may be null.
  DataLoader* validation = nullptr;
  /// Called after each step and each epoch, a last one that was broken off included; returning
  /// false stops training. With on_step, a card waits for it behind each step, as it does where
  /// Callback::looks_at_step says so.
  std::function<bool(const Progress&)> on_step = {};
  std::function<bool(const EpochReport&)> on_epoch = {};
  /// What else follows the run.
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  /// Asked after each step and before each batch of a measurement; false stops the run there, and
  /// on a card behind the step that was started meanwhile.
  std::function<bool()> goes_on = {};
  /// Told at once what goes wrong without ending the run: files of callbacks that cannot be
  /// written.
  std::function<void(const std::string& problem)> on_problem = {};
  /// A file that the callback Checkpoint wrote: training goes on from there, with the bits that it
  /// would have had. Model, options and loaders must be those of the run that wrote it. With more
  /// epochs the schedule is that of as many from the start, so the rate may jump.
  std::filesystem::path resume = {};
  /// Measures the model before the first step, where there are validation data.
  bool measure_first = false;
};

/// Trains a model on batches: TrainStep, epochs and measures. With a communicator, all ranks make
/// the same calls, `train_step` left alone, with loaders that have a shard each; what they report
/// is of all ranks' samples, and what stops one stops all.
class Trainer {
 public:
  /// As TrainStep. `options.total_updates`, when 0, is set by the first `fit`, and by each later
  /// one, to the updates that were made and those that are to come: the schedule runs over all of
  /// them.
  explicit Trainer(Model& model, TrainOptions options = {});

  /// One step. Throws Error{numeric} if the loss is NaN or infinite; the update of that step has
  /// been made by then, and within `fit` a card may have made the next one as well.
  StepReport step(const Batch& batch);

  /// A step whose device may still be at it.
  struct Started {
    StartedStep step;
    std::int64_t samples;
    std::int64_t judged;   // predictions that count, of class losses
    double weight;         // of the loss (StepReport)
    std::int64_t updates;  // with it
    double rate;
    bool is_untrained;
  };
  /// `step` in two parts: a card may still be at the step, and at the one before, when `start`
  /// returns (TrainStep::start). `finish` waits for it, and throws what `step` throws; of errors it
  /// names the place in `run`. With a communicator, ranks finish steps in one order.
  Started start(const Batch& batch);
  StepReport finish(const Started& started, const Run* run = nullptr) const;
  /// Whether that gains anything: the CPU has done the step when `start` returns.
  bool overlaps() const { return overlaps_; }

  /// Whole epochs. Throws what step, evaluate, callbacks and the loader throw, Error{numeric}
  /// before the epoch's callbacks if its updates made a parameter NaN or infinite that was not, and
  /// what load_training_state and load_state throw of the file to resume from.
  std::vector<EpochReport> fit(DataLoader& loader, const FitOptions& options = {});

  /// Measures the model as it is now, in inference form, by its averages where
  /// TrainOptions::ema keeps them; `goes_on` as Evaluator::run takes it.
  /// Throws Error{numeric} if the loss is NaN or infinite.
  Evaluation evaluate(DataLoader& loader, const std::function<bool()>& goes_on = {});
  /// The same of one batch, for loops by hand.
  Evaluation evaluate(const Batch& batch);

  /// From now on evaluations measure this too.
  void add_metric(std::shared_ptr<Metric> metric);

  /// What a checkpoint of the run holds; its tensors are the step's own. Throws Error{numeric} if
  /// training made a parameter NaN or infinite that was not.
  TrainingState state(const Run& run) const;

  TrainStep& train_step() { return step_; }
  const Model& model() const { return *model_; }

 private:
  bool may_report_late(const Run& run, const FitOptions& options) const;
  void report(Run& run, const FitOptions& options, const Started& started,
              const std::function<double()>& seconds);
  /// What asks one rank to stop stops all.
  void decide_together(Run& run) const;
  void save_if_asked(Run& run);
  void resume(Run& run, DataLoader& loader, const std::filesystem::path& path);
  std::vector<EpochReport> train(Run& run, DataLoader& loader, const FitOptions& options);
  /// False if the epoch was broken off.
  bool train_epoch(Run& run, DataLoader& loader, const FitOptions& options);
  /// Empty if the measurement was broken off.
  std::optional<Evaluation> validate(Run& run, const FitOptions& options);
  /// Names of the parameters all of whose numbers are finite, of these.
  std::vector<std::string> finite_of(const std::vector<std::string>& names) const;
  void require_finite() const;
  Evaluation require_finite(const Evaluation& evaluation);

  Model* model_;
  Loss loss_;
  Communicator* ranks_;
  std::int64_t total_updates_;
  int accumulate_;
  TrainStep step_;
  Evaluator evaluator_;
  bool overlaps_;  // the device does
  /// Parameters that were finite when the run began: others may hold infinities on purpose, as
  /// masks of attention do.
  std::vector<std::string> finite_;
};

}  // namespace graft
