#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/passes/pass_log.h"
#include "core/passes/pipeline.h"
#include "core/runtime/plan.h"
#include "train/step_builder.h"

namespace graft {

/// A copy of the model in the newest form, from which evaluation is compiled. `mark_variables`
/// marks what changes between runs: on whatever device that lies, the copy shares it. Throws
/// Error{unsupported} that lists the ops that Graft does not know.
Model newest_form(const Model& model, const std::function<void(Graph&)>& mark_variables = {});

/// A model made ready to train: a working copy in the newest form that shares the tensors of
/// `file`, and what the step changes, marked as variables, which lie on the device to train on.
struct TrainableModel {
  Model
      file;  ///< a copy of the user's model with the initializers that training needs of their own
  Model model;
  Trained trained;
};

/// Takes neither tensors nor graph of the user's model; `share_with_file` does. Throws
/// Error{unsupported} that lists the ops that Graft does not know, Error{argument} if the options
/// do not fit the model, whose loss and outputs are looked for too. `log` gets a record of what
/// passes do.
TrainableModel prepare_training(const Model& model, const TrainOptions& options,
                                passes::PassLog* log = nullptr);

/// Changes the user's model so that it holds what is trained. Throws nothing but Error{memory}.
void share_with_file(const TrainableModel& trainable, Model& model);

/// Throws Error{argument} for tensors of a batch that are undefined.
void check_defined(std::span<const Tensor> inputs, std::span<const Tensor> targets);

/// What a step becomes.
struct StepForm {
  /// The lists that its graph goes through: as training wants nodes, behind the loss, behind
  /// updates.
  const passes::Pipeline& training_form;
  const passes::Pipeline& forward;
  const passes::Pipeline& whole;
  /// The new contents of variables are outputs.
  bool returns_variables = false;
};
/// A plan of Graft's. Other forms stand where they are asked for, so that who does not ask need not
/// link what makes them.
extern const StepForm kPlannedStep;

struct CompileRequest {
  StepKind kind = StepKind::update;
  /// Of the model's required inputs, in order, but for those that take targets (graph_loss); and of
  /// the loss's targets.
  std::vector<ValueType> inputs;
  std::vector<ValueType> targets;
  /// Of the parameters; for all kinds but StepKind::evaluate, as is what follows.
  Trained trained = {};
  /// State that it holds is taken from there; new state is added.
  StateTensors* state = nullptr;
  /// How many were done before the step: groups that start later are frozen in it.
  std::int64_t updates = std::numeric_limits<std::int64_t>::max();
  /// Shared by the plans of several batch shapes (PlanOptions::constants).
  std::shared_ptr<SharedConstants> constants = nullptr;
  const StepForm* form = &kPlannedStep;
  passes::PassLog* log = nullptr;
};

struct CompiledGraph {
  std::unique_ptr<Graph> graph;
  /// "loss", "prediction", then the parameters whose gradients follow, or the variables whose new
  /// contents do.
  std::vector<std::string> outputs;
  /// As in StepBuilder.
  std::string judged;
  std::vector<std::int64_t> classes;
  /// Behind these outputs there is the number of right predictions.
  bool counts_correct = false;
};

struct Compiled {
  Plan plan;
  /// What the plan's outputs are: "loss", "prediction", then the parameters whose gradients follow.
  std::vector<std::string> outputs;
  std::vector<std::int64_t> classes;
  /// As in CompiledGraph.
  bool counts_correct = false;
};

/// Builds the step's graph for batches of given types: forward, loss, gradients, updates. Its
/// inputs are the model's, then the targets, and, but for StepKind::evaluate, `lr` (f32 scalar) and
/// `step` (i64 scalar) of each of UpdateGroups::clocks. `model`: in the newest form, what changes
/// between runs marked as variable. Throws what TrainStep::run says of batches that do not fit and
/// gradients that cannot pass, and Error{unsupported} if an exported step needs an op that ONNX
/// lacks.
CompiledGraph compile_graph(const Model& model, const TrainOptions& options,
                            const CompileRequest& request);

/// The same as a plan on the options' device, within their memory budget.
Compiled compile(const Model& model, const TrainOptions& options, const CompileRequest& request);

}  // namespace graft
