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

/// What the runtime wants that will run an exported step.
struct StepFormat {
  /// The version of ONNX's ops, from 13 on; 0: the oldest in which the nodes stand as they are.
  std::int64_t opset = 0;
  /// How many steps one call makes, each on a batch and with a rate of its own.
  std::int64_t steps = 1;
};

/// A training step as a model in ops of ONNX alone, which any runtime can run: forward, loss,
/// gradients and updates for batches of one shape. Nothing is kept between runs; who calls it
/// passes variables on.
struct StepModel {
  /// Inputs: the model's own, the target, `lr` (f32 scalar), `step` (i64 scalar, from 1 on), then
  /// the variables. Outputs: the loss, the prediction, then each variable's `next`. Where a call
  /// makes several steps, all but the variables have a first axis of that length.
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
/// lacks (CTC's among them) or names the node that the opset lacks, or if the options accumulate
/// micro-batches, Error{argument} for a format that cannot be or without an optimizer, and what
/// TrainStep throws.
StepModel export_step(const Model& model, const TrainOptions& options,
                      const std::vector<ValueType>& inputs, const ValueType& target,
                      const StepFormat& format = {});

}  // namespace graft
