#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/tensor/tensor.h"

namespace graft {

/// All that a TrainStep's next steps depend on, beside the model's graph, the options and the
/// batches. Taken by `TrainStep::state`, given back by `load_state`: training then goes on with the
/// bits that it would have had.
struct TrainState {
  /// The model's numbers by name: parameters, running statistics, and floats that stay as they are.
  std::map<std::string, Tensor> weights;
  /// What the optimizer keeps, "<parameter>.momentum" and such; between the micro-batches of an
  /// update, the gradients so far, "<parameter>.accumulated"; what trains in place of 16 bits,
  /// "<parameter>.master", of which the others are then ("<parameter>.master.momentum").
  std::map<std::string, Tensor> optimizer;
  /// Updates done.
  std::int64_t updates = 0;
  /// Batches taken: Dropout draws by it, and it tells the place within an accumulation.
  std::uint64_t batches = 0;
  /// Over how many updates the schedule runs.
  std::int64_t total_updates = 0;
  float base_learning_rate = 0.0F;
};

/// The most updates, samples or epochs that a state may say: so many, no run does, and a double can
/// tell them apart. What goes on counting from there does not overflow.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;

/// A copy that shares no elements with the step.
TrainState clone(const TrainState& state);

}  // namespace graft
