#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "train/tied.h"
#include "train/train_step.h"

namespace graft {

/// What a step does with its gradients.
enum class StepKind {
  update,      ///< updates the parameters
  accumulate,  ///< adds them to buffers
  apply,       ///< adds them to what the buffers hold, updates, and empties the buffers
  gradients,   ///< returns them as outputs
};

/// Tensors that live from step to step beside the parameters (optimizer state, gradient buffers),
/// shared by the plans of all batch shapes. By name.
using StateTensors = std::map<std::string, Tensor>;

/// What the step changes, beside running statistics.
struct Trained {
  std::vector<std::string> parameters;
  std::vector<Tie> ties = {};
};

struct StepGraph {
  /// Inputs: the model's, then target, lr (f32 scalar), step (i64 scalar).
  /// Outputs: loss, prediction, then gradients in the order of `gradient_names`.
  std::unique_ptr<Graph> graph;
  std::vector<std::string> gradient_names;
};

/// Builds the training step of `model` (in the newest form; its parameters marked as variables) for
/// batches of the given types. State that `state` holds is taken from there; new state is added.
StepGraph build_step_graph(const Model& model, const TrainOptions& options, const Trained& trained,
                           const std::vector<ValueType>& input_types, const ValueType& target_type,
                           StepKind kind, StateTensors& state);

/// The model in inference form with its loss. Inputs: the model's, then target. Outputs: loss,
/// prediction.
std::unique_ptr<Graph> build_evaluation_graph(const Model& model, const Loss& loss,
                                              const std::string& output,
                                              const std::vector<ValueType>& input_types,
                                              const ValueType& target_type);

}  // namespace graft
