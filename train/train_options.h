#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/device/communicator.h"
#include "core/device/device.h"
#include "core/passes/precision.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/parameter_group.h"

namespace graft {

/// In what numbers ranks send one another gradients of f32.
enum class WirePrecision { f32, bf16 };

struct TrainOptions {
  Loss loss = cross_entropy();
  /// Without one, a step computes the gradients of its batch and changes nothing but running
  /// statistics: groups, layer_decay, schedule, accumulate and ema then count for nothing.
  std::optional<Optimizer> optimizer = SGD{};
  /// Regular expression (RE2) that the whole name of a parameter must match to train; empty:
  /// what trains by default, float initializers that reach an input which usually holds a weight.
  std::string trainable = "";
  /// Parameters whose whole name matches this one stay frozen; empty: none.
  std::string freeze = "";
  /// Exactly these train, whatever the patterns and the defaults say; empty: by pattern.
  std::vector<std::string> parameters = {};
  /// Groups of initializers that are one parameter, written more than once by the exporter (as it
  /// is, and transposed): they train as one and stay equal. The first of a group counts.
  std::vector<std::vector<std::string>> tied = {};
  /// Which parameters have a rate, a decay or a schedule of their own, or start later. The last
  /// group that matches and has a setting counts.
  std::vector<ParameterGroup> groups = {};
  /// Each layer's rate is this times that of the next; the last layer has the optimizer's. In
  /// (0, 1]; rates of groups count as they are.
  float layer_decay = 1.0F;
  /// Above 0: averages of all that trains are kept, a' = d a + (1 - d) w after each update, with d
  /// this number but at most (1 + t) / (10 + t) in update t, so that the first weights are soon
  /// forgotten. Below 1.
  float ema = 0.0F;
  /// The output that the loss judges, where the loss does not name its outputs; empty: the first.
  std::string output = "";
  /// The device to train on, by a name that `device()` takes. Parameters are moved there, and the
  /// model shares them: their elements are then seen through `Tensor::to(cpu())`.
  std::string device = "auto";
  /// What becomes of ops for which that device has no kernel.
  Fallback fallback = Fallback::none;
  /// The device gets each step by one call, where it can (PlanOptions::records). The results are
  /// the same without.
  bool records = true;
  /// Counts the predictions that rank their target first, where the loss has class targets:
  /// StartedStep::correct. A card counts within the step, so that the prediction stays there.
  bool counts_correct = false;
  Precision precision = Precision::f32;
  StatePrecision state_precision = StatePrecision::f32;
  Clip clip = {};
  /// How the learning rate changes over `total_updates` updates, which are 0 or more.
  Schedule schedule = {};
  std::int64_t total_updates = 0;
  /// Micro-batches whose gradients are averaged before one update. Those left over when training
  /// ends, fewer than that, make no update.
  int accumulate = 1;
  /// Chooses what Dropout drops: with the same seed, a step drops the same elements again.
  std::uint64_t seed = 0;
  /// The ranks that train together, each on batches of its own of the same shapes: an update takes
  /// the means of their gradients. Null: this process trains alone. On the CPU only.
  std::shared_ptr<Communicator> communicator = nullptr;
  /// With a communicator: how many updates each rank makes by its own gradients before parameters
  /// and what the optimizer keeps become their means over the ranks (local SGD: Stich, "Local SGD
  /// Converges Fast and Communicates Little", ICLR 2019). 1: each update is a joint one.
  int sync_every = 1;
  /// With a communicator: running statistics become their means over the ranks with each update,
  /// not only when `synchronize` is called. Each rank still normalizes by its own samples.
  bool sync_bn = false;
  /// With a communicator: in what numbers gradients of f32 travel. With bf16 they are half the
  /// bytes, rounded once by each rank before they are summed up in f32, and their mean once more.
  WirePrecision wire_precision = WirePrecision::f32;
  /// With a communicator: each rank keeps what the optimizer keeps, and makes the updates, for a
  /// share of the parameters alone, and all get these from it (ZeRO-1: Rajbhandari et al., arXiv
  /// 1910.02054). The bits are the same.
  bool shard_state = false;
  /// The most bytes for activations, gradients and scratch memory; 0: as many as it takes, but
  /// above 64 MB what is cheap to compute again is not kept. Parameters, optimizer state and
  /// batches come on top. What does not fit is computed again in the backward part, with the same
  /// bits.
  std::size_t memory_budget = 0;
  /// Fills memory with NaN bits before each step and as soon as it is dead: a value that is read
  /// before it is written then shows. For tests; slow.
  bool poison = false;
  /// Looks at what each node of a step makes, and throws Error{numeric} at the first NaN, or at the
  /// end of a step whose loss or update is infinite, or NaN because the data or the weights are:
  /// the text names the node that made it, or the value that was given, and the range of what was
  /// read. What the step has updated by then stays. To look for mistakes; slow.
  bool debug_nan = false;
};

}  // namespace graft
