#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/device/communicator.h"
#include "core/tensor/tensor.h"
#include "data/loader.h"
#include "train/metric.h"

namespace graft {

class Model;

/// The loss of several batches as if they had been one: means are weighed by what they divide by
/// (mean_weight), and one over nothing, which is NaN, adds nothing; sums are added and divided by
/// the samples. Of losses of several parts the means are weighed by the samples.
struct LossMean {
  double sum = 0.0;
  double weight = 0.0;

  /// `of_weight`: what mean_weight says of the batch.
  void add(const Loss& loss, double of_batch, double of_weight);
  /// 0 without a batch.
  double value() const { return weight > 0.0 ? sum / weight : 0.0; }
};

/// What a model achieves on data.
struct Evaluation {
  /// The mean over all that was judged (LossMean).
  double loss = 0.0;
  /// Share of targets whose class the model ranks first; absent for losses without classes.
  std::optional<double> accuracy;
  std::int64_t samples = 0;
  /// Targets that the accuracy counts.
  std::int64_t judged = 0;
  /// What the loss counts for among those of other data (LossMean).
  double weight = 0.0;
  /// What further metrics say, by their names.
  std::vector<std::pair<std::string, double>> metrics = {};
};

struct EvaluatorOptions {
  Loss loss = cross_entropy();
  /// The output that the loss judges; empty: the first.
  std::string output = "";
  std::string device = "auto";
  /// What becomes of ops for which that device has no kernel.
  Fallback fallback = Fallback::none;
  /// Initializers that are being trained. Where there are any, all float initializers but scalars
  /// are taken to change between runs.
  std::vector<std::string> parameters = {};
  /// The ranks that measure together; null: this process measures alone.
  std::shared_ptr<Communicator> communicator = nullptr;
};

/// Measures a model in inference form on data. Shares the model's weights; of one that is trained
/// meanwhile EvaluatorOptions::parameters must name what trains, or the results are of neither the
/// old weights nor the new.
class Evaluator {
 public:
  /// Throws Error{unsupported} that lists the ops that Graft does not know, Error{argument} if the
  /// model has no such output or no loss is called so.
  Evaluator(const Model& model, EvaluatorOptions options = {});
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  /// From now on `run` measures this too.
  void add_metric(std::shared_ptr<Metric> metric);

  /// One epoch of the loader, or as much of it as `goes_on`, called before each batch, allows: the
  /// means are then those of the batches before. Ranks that measure together call it together and
  /// get the same numbers: those of all samples where the loader has a shard of them, or else those
  /// of rank 0. Throws Error{shape}, {type} or {argument} if the data do not fit, or if there are
  /// further metrics and the loader has a shard.
  Evaluation run(DataLoader& loader, const std::function<bool()>& goes_on = {});
  /// The same of one batch, for loops by hand.
  Evaluation run(const Batch& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "0.25", "inf", "-inf", "nan": a NaN has a sign too, which says nothing.
std::string loss_text(double loss);

/// How many predictions rank their target first. `prediction`: scores along `class_axis`, f32 or
/// f64; `target`: class indices, one a prediction, of which `ignored` ones count for nothing; below
/// 0 no class is. They may lie on any device. Throws Error{type} or {shape} if they are not that,
/// Error{argument} if one is undefined or the prediction has no such axis.
std::int64_t count_correct(const Tensor& prediction, const Tensor& target, int class_axis,
                           std::int64_t ignored = -1);

}  // namespace graft
