#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "train/evaluator.h"
#include "train/train_step.h"

namespace graft {

/// What one step did to one batch.
struct StepReport {
  /// The loss of the batch before its update.
  double loss = 0.0;
  /// The share of right predictions before the update; absent for losses without classes.
  std::optional<double> accuracy;
  std::int64_t samples = 0;
};

/// What one epoch did.
struct EpochReport {
  int epoch = 0;  ///< from 1
  /// Means over the epoch's samples, each judged before its update.
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
};

struct FitOptions {
  int epochs = 1;
  /// Evaluated after each epoch; may be null.
  DataLoader* validation = nullptr;
  /// Called after each step and each epoch; returning false stops training.
  std::function<bool(const Progress&)> on_step = {};
  std::function<bool(const EpochReport&)> on_epoch = {};
};

/// Trains a model on batches: TrainStep, epochs and measures.
class Trainer {
 public:
  /// As TrainStep. `options.total_updates`, when 0, is set by `fit` from loader and epochs.
  explicit Trainer(Model& model, TrainOptions options = {});

  /// One step. Throws Error{numeric} if the loss is NaN or infinite; the update of that step has
  /// been made by then.
  StepReport step(const Batch& batch);

  /// Whole epochs. Throws what step, evaluate and the loader throw, and Error{numeric} before
  /// `on_epoch` if the epoch's updates made a parameter NaN or infinite that was not.
  std::vector<EpochReport> fit(DataLoader& loader, const FitOptions& options = {});

  /// Measures the model as it is now, in inference form; `goes_on` as Evaluator::run takes it.
  /// Throws Error{numeric} if the loss is NaN or infinite.
  Evaluation evaluate(DataLoader& loader, const std::function<bool()>& goes_on = {});

  TrainStep& train_step() { return step_; }

 private:
  /// Names of the parameters all of whose numbers are finite, of these.
  std::vector<std::string> finite_of(const std::vector<std::string>& names) const;
  void require_finite(const std::vector<std::string>& names) const;

  Model* model_;
  Loss loss_;
  std::int64_t total_updates_;
  int accumulate_;
  TrainStep step_;
  Evaluator evaluator_;
};

}  // namespace graft
