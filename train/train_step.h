#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/step_profile.h"
#include "core/tensor/tensor.h"
#include "train/parameter_group.h"
#include "train/train_options.h"
#include "train/train_state.h"

namespace graft {

class Model;

/// What a step finds, which its device may still be at: each question waits for it, and for no
/// later one. May outlive the TrainStep.
class StartedStep {
 public:
  struct Numbers;
  explicit StartedStep(std::shared_ptr<const Numbers> numbers) : numbers_(std::move(numbers)) {}

  /// Before the update. Throws Error{device} for what went wrong on the device.
  double loss() const;
  /// How many predictions rank their target first, with TrainOptions::counts_correct and a loss
  /// that has class targets. Throws as `loss`.
  std::optional<std::int64_t> correct() const;

 private:
  std::shared_ptr<const Numbers> numbers_;
};

/// A model's training step: forward, loss, backward and update as one plan for each set of batch
/// shapes. Updates the model's own initializers in place, after those that an exporter merged are
/// separated (separate_parameters); the model must outlive the step and keep its graph. Parameters
/// of 16 bits train in f32, and the model gets them rounded. Losses of logits judge those before a
/// Softmax or Sigmoid that the output comes from, and log-probabilities are made of such an output.
/// What does not train here is taken as it is when a plan is made: where several steps train parts
/// of one model, make a step anew when its turn comes. With a communicator, the constructor, which
/// gives all ranks the numbers of rank 0, and `run` are called by all ranks. Not for use by two
/// threads at once.
class TrainStep {
 public:
  /// Throws Error{unsupported} that lists all ops that Graft does not know, Error{argument} if the
  /// options do not fit the model, and then leaves the model as it was. What depends on shapes is
  /// found by the first step.
  explicit TrainStep(Model& model, TrainOptions options = {});
  ~TrainStep();
  TrainStep(TrainStep&&) noexcept;
  TrainStep& operator=(TrainStep&&) noexcept;

  /// One step on one (micro-)batch; returns the loss before the update. `inputs`: one tensor a
  /// required model input, in order. Class indices are checked before anything runs.
  /// Throws Error{shape}, {type} or {argument} if the batch does not fit the model or the loss,
  /// Error{unsupported} that lists all nodes through which gradients cannot pass, Error{memory}
  /// naming the least budget that works and the largest batch that fits, Error{numeric} as
  /// TrainOptions::debug_nan says. A step that throws another error changes nothing.
  float run(const std::vector<Tensor>& inputs, const Tensor& target);
  /// The same with several targets, for losses that take as many.
  float run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets);

  /// The same, but a card may still be at it, and at the step before, when this returns: the next
  /// batch then travels beside them. Inputs on the host may change as soon as it returns. What goes
  /// wrong on the device, the next call that waits for it throws.
  StartedStep start(const std::vector<Tensor>& inputs, const Tensor& target);
  StartedStep start(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets);

  /// Makes the plan of the next step for such a batch, which `run` would make otherwise: memory is
  /// taken and whatever stops training is thrown now. Only types and shapes count.
  void plan(const std::vector<Tensor>& inputs, const Tensor& target);
  void plan(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets);

  /// The judged output, or the first of them, in the last step (a view on the step's device, valid
  /// until the next step), in f32 where the model computes in 16 bits.
  const Tensor& prediction() const;
  /// Gradients of the last step by parameter name (copies on the CPU); only without an optimizer.
  std::map<std::string, Tensor> gradients() const;

  /// The rate of the next update: the base rate, scaled by the schedule.
  float learning_rate() const;
  /// That of one parameter; 0 while it is frozen. Throws Error{argument} if it does not train.
  float learning_rate(const std::string& parameter) const;
  /// The rates of groups change in proportion. Throws Error{argument} if it is not finite or below
  /// 0.
  void set_base_learning_rate(float lr);
  /// Over how many updates schedules run. Throws Error{argument} outside [0, kMostCounted].
  void set_total_updates(std::int64_t total);
  /// The rate before schedules.
  float base_learning_rate() const;
  /// Where training stands. The tensors are the step's own: valid as they are until the next step,
  /// `clone` keeps them. Throws Error{argument} on a rank that has not all of it (`gather_state`).
  TrainState state() const;
  /// Goes on from there, here or in another process. Throws Error{argument} if the state is not of
  /// such a model, such parameters and such an optimizer; the step is then as it was. Plans are
  /// made anew, so that what the last step gave is gone.
  void load_state(const TrainState& state);
  /// Where ranks train together: what has come from each rank's own batches, running statistics,
  /// gradients that wait for an update and, with sync_every, own updates, becomes its mean over the
  /// ranks. All ranks then hold the same bits. Trainer::fit does so after each epoch.
  void synchronize();
  /// Where ranks train together: until the next step `state` says on rank 0 what `synchronize`
  /// would lead to, though nothing changes, and, with shard_state, what all ranks keep.
  void gather_state();
  /// The number of updates done so far.
  std::int64_t updates() const;

  /// From now on the model holds the averages that TrainOptions::ema keeps, or again what is
  /// trained, which alone can train on. Without averages, or before the first update, nothing
  /// changes.
  void use_averages(bool on);
  bool uses_averages() const;

  /// Names of the parameters that train, and how many numbers they hold.
  const std::vector<std::string>& parameter_names() const;
  std::int64_t parameter_count() const;
  /// Names of the initializers that a step changes: parameters, what is tied to them, and running
  /// statistics, unless these are left out.
  std::vector<std::string> changed_names(bool with_statistics = true) const;
  /// The same names by how they are updated; empty without an optimizer.
  const std::vector<UpdateGroup>& groups() const;

  /// The bytes of the largest arena planned so far.
  std::size_t arena_bytes() const;
  /// The most bytes that are alive at once in the last planned step: no arena can be smaller.
  std::size_t lower_bound_bytes() const;
  /// The bytes of the parameters that train, and of what the optimizer keeps beside them.
  std::size_t parameter_bytes() const;
  std::size_t state_bytes() const;
  /// The printed graph of the last planned step, and its kernels: for tests and curiosity.
  std::string describe() const;
  /// Measures each node of the last planned step from now on. Throws Error{argument} before the
  /// first step.
  void set_profiling(bool on);
  std::vector<StepProfile> profile() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft
