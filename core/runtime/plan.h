#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/ops/kernel.h"
#include "core/runtime/step_profile.h"
#include "core/tensor/tensor.h"

namespace graft {

class SharedConstants;

namespace passes {
struct PassLog;
}

struct PlanOptions {
  Device* device = &cpu();
  Fallback fallback = Fallback::none;
  /// Where the device can, what a run does is recorded once and given to it by one call each time.
  /// The results are the same without.
  bool records = true;
  /// Takes the memory with which runs are started one behind the other: see Plan::start.
  bool starts = false;
  /// Inputs and outputs lie in tensors of the caller on the plan's device: see Plan::bind.
  bool binds_outputs = false;
  /// Fills memory with NaN bits before each run and as soon as it is dead: a value that is read
  /// before it is written then shows. For tests; slow.
  bool poison = false;
  /// Looks at what each node makes, and stops at the first NaN, naming the node, or where a NaN
  /// that was given reaches a result (NanWatch). To look for mistakes; slow. Nodes are not joined
  /// into chains then.
  bool debug_nan = false;
  /// Joins element-wise nodes (passes::fuse_chains). The results are the same without.
  bool fuses_chains = true;
  /// The most bytes that the arena may take: activations, gradients and scratch memory, but not
  /// initializers, inputs and what libraries hold. 0: as many as it takes. A graph that takes more
  /// must be a training step (see fit_budget), whose backward part then computes some values again.
  std::size_t memory_budget = 0;
  /// The share of its work that a training step without a budget may do twice to save
  /// memory (see recompute_cheap_values). 0: every value that the backward part reads is kept.
  double repeated_share = 0;
  /// An arena of up to so many bytes need not become smaller: without a budget, such a step keeps
  /// every value all the same.
  std::size_t ample_bytes = 0;
  /// Plans of one graph for several shapes share what they copy to their device; null: the plan has
  /// copies of its own.
  std::shared_ptr<SharedConstants> constants = nullptr;
  /// Gets a record of what planning does to the graph; null: none is kept.
  passes::PassLog* log = nullptr;
};

/// A graph of known shapes made ready to run: prepared kernels in order, every buffer placed. After
/// construction `run` neither allocates nor looks anything up. Not for use by two threads at once.
class Plan {
 public:
  /// Takes the graph. Throws Error{unsupported} naming the node if a kernel is missing, or all ops
  /// without one on another device than the CPU; Error{memory} if the arena cannot be had, or if
  /// the budget cannot be met.
  explicit Plan(std::unique_ptr<Graph> graph, const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  /// Whether `run` takes these inputs. Does not allocate.
  bool accepts(std::span<const Tensor> inputs) const;

  /// `inputs`: one tensor a required graph input, in order, of the planned type and shape. A plan
  /// on the CPU reads them where they lie, which is there; others copy them to the device from
  /// wherever they are. Throws Error{shape} or Error{device} otherwise, Error{numeric} as
  /// PlanOptions::debug_nan says; variables are then updated in part. Returns when all is done.
  void run(std::span<const Tensor> inputs, const RunState& state = {});
  /// The same for a plan that starts, but a device that overlaps (core/device/overlap.h) may still
  /// be at it, and at runs before it, when this returns; inputs on the host may change then. What
  /// goes wrong there, the next call that waits for the device throws.
  void start(std::span<const Tensor> inputs, const RunState& state = {});

  /// For a plan that binds outputs: `run_bound` reads these inputs and writes these outputs, one a
  /// graph output, until others are bound; the caller keeps the inputs alive. Throws as `run`, of
  /// outputs too; Error{argument} if an output shares bytes with another tensor that is bound; on
  /// a card, Error{argument} if a tensor starts where its kernels cannot read, and Error{device} if
  /// it is not all in the card's memory. A card records what is bound at its second run.
  void bind(std::span<const Tensor> inputs, std::span<const Tensor> outputs);
  /// Returns when all is done.
  void run_bound();

  /// A view of graph output `index`, on the plan's device; its elements are valid until the next
  /// run or the plan's end. The bound tensor, where outputs are bound.
  const Tensor& output(int index) const;
  int output_count() const;

  const Graph& graph() const;
  std::size_t arena_bytes() const;
  /// The most bytes that are alive at one step.
  std::size_t lower_bound_bytes() const;
  std::size_t step_count() const;
  /// What each step cost so far: one entry a step, in the order in which they run.
  std::vector<StepProfile> profile() const;
  /// Switches the measuring of each step on (from zero) or off.
  void set_profiling(bool on);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft
