#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/ops/builder.h"
#include "optim/update.h"
#include "train/masters.h"
#include "train/shared_state.h"
#include "train/tied.h"
#include "train/train_step.h"
#include "train/update_groups.h"

namespace graft {

/// What a step does beside computing the loss.
enum class StepKind {
  evaluate,    ///< nothing
  update,      ///< updates the parameters
  accumulate,  ///< adds the gradients to buffers
  apply,       ///< adds them to what the buffers hold, updates, and empties the buffers
  gradients,   ///< returns the gradients as outputs
};

/// What the step changes, beside running statistics.
struct Trained {
  std::vector<std::string> parameters = {};
  std::vector<Tie> ties = {};
  UpdateGroups updates = {};
  Owners owners = {};
};

/// A step's graph under construction: what it gets beside the model's nodes. Between the calls,
/// which follow one another in this order, passes may rewrite all of it (train/compile.cpp).
class StepBuilder {
 public:
  /// Copies the model's graph, with the judged outputs as its only ones. `inputs`, `targets`: how
  /// many a batch has. Throws Error{argument} if there is no such output.
  StepBuilder(const Model& model, const TrainOptions& options, std::size_t inputs,
              std::size_t targets);

  Graph& graph() { return *graph_; }

  /// What the graph's required inputs take: those of the batch and, where the model computes the
  /// loss of them, its targets.
  std::vector<ValueType> input_types(std::vector<ValueType> inputs,
                                     const std::vector<ValueType>& targets) const;

  /// A step is one plan, so it holds no node whose shapes depend on data, wherever it stands.
  /// Throws Error{unsupported} naming the first.
  void refuse_open_shapes() const;

  /// Lets parameters of 16 bits train in f32 (train/masters.h). Returns whether there are any.
  bool add_masters(StateTensors& state);

  /// Adds an input for each target and the loss, of the logits where an output is what a Softmax or
  /// Sigmoid made of them (train/logits.h). The outputs are then loss and prediction, in f32 where
  /// the model has 16 bits.
  void add_loss(const std::vector<ValueType>& targets);

  /// Throws Error{argument} if the prediction depends on none of the parameters, and what
  /// autograd::backward throws.
  void add_gradients(const std::vector<std::string>& parameters);

  /// Adds the inputs `lr` (f32 scalar) and `step` (i64 scalar) of each clock, and what the step
  /// does with the gradients. State that `state` holds is taken from there; new state is added.
  /// StepKind::evaluate has none of this.
  void add_updates(StepKind kind, const Trained& trained, StateTensors& state);

  /// Adds how many predictions rank their target first as a last output, an i64 scalar. Returns
  /// whether the loss has targets for that.
  bool count_correct();

  /// Makes the new contents of all variables outputs, so that they can be inputs as well.
  void return_variables();

  /// What the loss judges in place of the output, for users: "the logits before Softmax node 'p'".
  /// Empty where it judges the output itself.
  const std::string& judged() const { return judged_; }

  /// How many classes the targets of each judged output choose from; 0 where they are no classes.
  const std::vector<std::int64_t>& classes() const { return classes_; }

  /// Those whose gradients or new contents are outputs behind loss and prediction, in their order.
  const std::vector<std::string>& further_outputs() const { return further_outputs_; }

  std::unique_ptr<Graph> take_graph() { return std::move(graph_); }

 private:
  void add_targets(const std::vector<ValueType>& types);
  void take_graph_loss();
  Expr score_of(std::size_t index, Builder& builder);
  Expr add_scalar_input(std::string_view stem, DType dtype);
  std::vector<Expr> add_gradient_buffers(StateTensors& state);
  void accumulate(const std::vector<Expr>& buffers);
  void update(const std::vector<UpdateInputs>& clocks, const Trained& trained, StateTensors& state);
  void return_gradients();

  std::unique_ptr<Graph> graph_;
  const TrainOptions& options_;
  std::optional<Builder> builder_;           // of gradients and updates
  std::vector<std::size_t> judged_outputs_;  // which of the graph's outputs the loss judges
  std::vector<Value*> targets_;
  bool model_takes_targets_ = false;
  std::string judged_;
  std::vector<std::int64_t> classes_;
  std::vector<Master> masters_;
  std::vector<Value*> parameters_;  // or their masters
  std::vector<std::string> names_;  // of the parameters
  std::vector<Expr> gradients_;     // of these
  std::vector<std::string> further_outputs_;
};

}  // namespace graft
