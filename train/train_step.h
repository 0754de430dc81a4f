#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/device/communicator.h"
#include "core/passes/precision.h"
#include "core/runtime/step_profile.h"
#include "core/tensor/tensor.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/parameter_group.h"
#include "train/train_state.h"

namespace graft {

class Model;

struct TrainOptions {
  Loss loss = cross_entropy();
  /// Without one, a step computes gradients and changes nothing but running statistics.
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
  Precision precision = Precision::f32;
  StatePrecision state_precision = StatePrecision::f32;
  Clip clip = {};
  /// How the learning rate changes over `total_updates` updates.
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
  /// The most bytes for activations, gradients and scratch memory; 0: as many as it takes, but
  /// above 64 MB what is cheap to compute again is not kept. Parameters, optimizer state and
  /// batches come on top. What does not fit is computed again in the backward part, with the same
  /// bits.
  std::size_t memory_budget = 0;
  /// Fills memory with NaN bits before each step and as soon as it is dead: a value that is read
  /// before it is written then shows. For tests; slow.
  bool poison = false;
  /// Looks at what each node of a step makes, and throws Error{numeric} at the first NaN, or at the
  /// end of a step whose loss or update is infinite: the text names the node that made it and the
  /// range of what it read. What the step has updated by then stays. To look for mistakes; slow.
  bool debug_nan = false;
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
  void set_total_updates(std::int64_t total);
  /// Where training stands. The tensors are the step's own: valid as they are until the next step,
  /// `clone` keeps them.
  TrainState state() const;
  /// Goes on from there, here or in another process. Throws Error{argument} if the state is not of
  /// such a model, such parameters and such an optimizer; the step is then as it was. Plans are
  /// made anew, so that what the last step gave is gone.
  void load_state(const TrainState& state);
  /// Where ranks train together: what has come from each rank's own batches, running statistics,
  /// gradients that wait for an update and, with sync_every, own updates, becomes its mean over the
  /// ranks. All ranks then hold the same bits. Trainer::fit does so after each epoch.
  void synchronize();
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
