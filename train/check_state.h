#pragma once

#include "train/step_builder.h"
#include "train/train_state.h"

namespace graft {

/// What a state holds of the model: its parameters, and all floats but scalars, among them running
/// statistics. `graph`: that of the working copy.
std::map<std::string, Tensor> weights_of(const Graph& graph, const Trained& trained);

/// Throws Error{argument} unless both hold the same names with the same types and shapes.
void check_weights(const std::map<std::string, Tensor>& wanted,
                   const std::map<std::string, Tensor>& found);

/// Copies into each of `weights` what `found` has by its name, unless the bits are equal: what does
/// not train may lie in memory that cannot be written. Both have passed check_weights().
void copy_changed(const std::map<std::string, Tensor>& weights,
                  const std::map<std::string, Tensor>& found);

/// Throws Error{argument} unless the optimizer's part of the state is one that a step with these
/// options can have made: each tensor is of a parameter and has its shape and the type in which the
/// step keeps it, and those are there that the optimizer keeps, and no others.
void check_optimizer_state(const Graph& graph, const Trained& trained, const TrainOptions& options,
                           const TrainState& state);

}  // namespace graft
