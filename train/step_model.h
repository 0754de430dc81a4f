#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"
#include "train/train_step.h"

namespace graft {

/// A tensor that a step changes: a parameter, an optimizer's state or a running statistic. The
/// output `next` of one step is the input `name` of the next.
struct StepVariable {
  std::string name;
  std::string next;
  Tensor initial;
  bool is_parameter = false;
};

/// A training step as a model in ops of ONNX alone, which any runtime can run: forward, loss,
/// gradients and updates for batches of one shape. Nothing is kept between runs; who calls it
/// passes variables on.
struct StepModel {
  /// Inputs: the model's own, the target, `lr` (f32 scalar), `step` (i64 scalar, from 1 on), then
  /// the variables. Outputs: the loss, the prediction, then each variable's `next`.
  Model step;
  /// Inputs: the model's own, the target, then the variables that it reads. Outputs: the loss and
  /// the prediction, in inference form.
  Model evaluation;
  std::vector<StepVariable> variables;
  /// The input in which the step takes the target.
  std::string target;
};

/// Writes a step with the model's optimizer, loss and trained parameters as `options` say it.
/// `inputs`: of the model's required inputs, in order; these and `target` have known shapes.
/// Leaves the model as it is. Throws Error{unsupported} that lists the ops of the step that ONNX
/// lacks (CTC's among them), and what TrainStep throws.
StepModel export_step(const Model& model, const TrainOptions& options,
                      const std::vector<ValueType>& inputs, const ValueType& target);

}  // namespace graft
