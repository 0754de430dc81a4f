#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/ops/expr.h"
#include "core/tensor/tensor.h"
#include "train/callback.h"
#include "train/masters.h"
#include "train/train_options.h"

namespace graft {

struct Trained;

// What a step that several ranks make together does beside its own (adr/0056). What takes a
// Communicator that is not const is called by all ranks.

/// The seed of what a rank draws for itself: another on each rank, on rank 0 the given one.
std::uint64_t seed_of_rank(std::uint64_t seed, const Communicator& ranks);

/// Gradients of all ranks.
struct Means {
  std::vector<Expr> gradients;
  /// What the last message brought: while it is needed, all are sent.
  Expr last;
};

/// Adds the nodes that replace gradients by their means over the ranks: AllReduce of some megabytes
/// each, the last gradients first, since those come first. `before`: what stands before all of
/// them.
Means mean_over_ranks(const std::vector<Expr>& gradients, const Expr& before,
                      const Communicator& ranks, WirePrecision wire);

/// Running statistics, what they are in f32 where they have 16 bits, and their averages
/// (TrainOptions::ema). `graph`: the working copy; `state`: what is kept beside it.
std::vector<Tensor> statistics_of(const Graph& graph, const StateTensors& state);

/// What comes from a rank's own batches: statistics, and gradients that wait for an update.
std::vector<Tensor> own_of_rank(const Graph& graph, const StateTensors& state);

/// What a rank's own updates change as well (TrainOptions::sync_every): beside those, parameters,
/// what is tied to them, and what the optimizer keeps.
std::vector<Tensor> changed_on_rank(const Graph& graph, const Trained& trained,
                                    const StateTensors& state);

/// Throws Error{unsupported} if ranks shall update parameters of 16 bits by themselves
/// (TrainOptions::sync_every, shard_state): their masters, not they, would have to be sent.
void check_own_updates(const Graph& graph, const std::vector<std::string>& parameters,
                       const TrainOptions& options);

/// All ranks get that of `root`.
void broadcast(const Tensor& tensor, int root, Communicator& ranks);

/// All ranks get rank 0's numbers of what training changes. The tensors lie on the CPU.
void share_start(const Graph& graph, const std::vector<std::string>& parameters,
                 Communicator& ranks);

/// Each float becomes its mean over the ranks, others those of rank 0.
void average(const std::vector<Tensor>& tensors, Communicator& ranks);

/// Of the batches of all ranks.
StepReport over_ranks(const StepReport& report, Communicator& ranks);

/// Whether it is so on any rank; of several, each for itself, by one message.
std::array<bool, 2> any_of_ranks(const std::array<bool, 2>& are_so, Communicator& ranks);
bool any_of_ranks(bool is_so, Communicator& ranks);

}  // namespace graft
