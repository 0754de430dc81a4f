#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/runtime/plan.h"
#include "train/train_step.h"

namespace graft {

/// Brings the numbers that steps find to the host, to be read while later steps are under way.
class LateNumbers {
 public:
  /// What the run that was started last finds: the loss is output 0, the prediction 1 and, with
  /// `plan_counts`, the last one the number of right predictions, which is counted here otherwise
  /// if the options want it. `targets`: the first is what the predictions are held against; a loss
  /// without class targets may have none.
  StartedStep take(const Plan& plan, bool plan_counts, const TrainOptions& options,
                   std::span<const Tensor> targets);

 private:
  const std::shared_ptr<StartedStep::Numbers>& unused(Device& device);

  std::vector<std::shared_ptr<StartedStep::Numbers>> all_;
};

}  // namespace graft
