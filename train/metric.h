#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace graft {

/// Measures predictions beside the loss, over all batches of an evaluation. A program may bring its
/// own: `trainer.add_metric(std::make_shared<Mine>())`.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Forgets all batches.
  virtual void reset() = 0;
  /// `prediction`: of one batch, f32 or f64; `target`: what the loss compares it with, -1 for
  /// classes that it ignores;
  /// `class_axis`: the axis of the prediction that runs over classes, -1 where there are none.
  /// Throws Error{argument}, {shape} or {type} if they are not what it measures.
  virtual void add(const Tensor& prediction, const Tensor& target, int class_axis) = 0;
  /// Names and numbers of what it measured; nothing where there was no batch.
  virtual std::vector<std::pair<std::string, double>> values() const = 0;
};

/// How often predicted and true classes meet: the row is the true class, the column the predicted
/// one. Targets outside the classes are not counted.
class ConfusionMatrix : public Metric {
 public:
  void reset() override;
  void add(const Tensor& prediction, const Tensor& target, int class_axis) override;
  /// The means over the classes that occur (among targets or predictions) of "precision", "recall",
  /// "f1" and intersection over union, "mean_iou"; where nothing is divided by nothing, 0.
  std::vector<std::pair<std::string, double>> values() const override;

  std::int64_t classes() const { return classes_; }
  /// 0 outside the classes, of which there are none before the first batch.
  std::int64_t count(std::int64_t true_class, std::int64_t predicted) const {
    const auto is_class = [this](std::int64_t c) { return c >= 0 && c < classes_; };
    if (!is_class(true_class) || !is_class(predicted)) return 0;
    return counts_[static_cast<std::size_t>(true_class * classes_ + predicted)];
  }

 private:
  void start(std::int64_t classes);

  std::int64_t classes_ = 0;
  std::vector<std::int64_t> counts_;
};

/// What `metric_from_name` takes: "top5" (any number), "precision", "recall", "f1", "mean_iou",
/// "mae", "rmse", "r2", "edit_distance".
std::vector<std::string> metric_names();

/// The share of targets among the k best classes; one mean of a ConfusionMatrix; mean absolute and
/// root mean square error and the coefficient of determination of numbers; Levenshtein's distance
/// between target and greedy CTC decoding, over the target's length; `blank`: as Loss::blank.
/// Throws Error{argument} for an unknown name, listing the valid ones.
std::shared_ptr<Metric> metric_from_name(std::string_view name, std::int64_t blank = 0);

}  // namespace graft
