#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "train/masters.h"
#include "train/train_state.h"

namespace graft {

struct Trained;
struct TrainOptions;

// What ranks hold together (adr/0056, adr/0059): how it stays the same on all of them, is shared
// out among them, and comes together where it is written.

/// Which rank makes the updates of a parameter, and keeps what the optimizer keeps for them
/// (TrainOptions::shard_state). Empty where each rank makes all.
using Owners = std::map<std::string, int>;

/// None unless the options ask for it and there are several ranks. The largest parameters first,
/// each to the rank with the fewest bytes: all ranks choose alike.
Owners choose_owners(const Graph& graph, const std::vector<std::string>& parameters,
                     const TrainOptions& options);

/// Leaves out what other ranks keep.
void keep_share(const Owners& owners, int rank, StateTensors& state);

/// A step's own tensors. All functions that take them are called by all ranks.
struct StepTensors {
  const Graph& graph;  ///< the working copy
  const Trained& trained;
  const StateTensors& state;
  const TrainOptions& options;
};

/// Behind that many updates: parameters come from their owners, and what ranks have changed by
/// themselves becomes its mean as often as the options say.
void meet_after_update(const StepTensors& step, std::int64_t updates);

/// What comes from a rank's own batches or updates becomes its mean over the ranks.
void meet(const StepTensors& step);

/// What rank 0 needs beside its own tensors to say what all ranks hold; empty elsewhere.
struct Gathered {
  /// By the data of the tensors whose means they are.
  std::map<const void*, Tensor> means = {};
  /// What other ranks keep.
  StateTensors state = {};
};

/// Changes nothing of the step.
Gathered gather(const StepTensors& step);

/// Puts what was gathered, if it was, into the state of rank 0. Throws Error{argument} where some
/// is missing.
void complete(TrainState& state, const std::optional<Gathered>& gathered, const StepTensors& step);

}  // namespace graft
