#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/graph/model.h"
#include "core/passes/pass_log.h"
#include "core/passes/precision.h"

namespace graft::passes {

/// What a graph is compiled for.
enum class Purpose {
  inference,   ///< answers
  evaluation,  ///< the loss of the model in inference form
  training,    ///< a step with gradients
};

/// What passes may ask for besides the graph.
struct PassContext {
  Device& device;
  Purpose purpose = Purpose::inference;
  Precision precision = Precision::f32;
  /// Starts the random numbers of Dropout.
  std::uint64_t seed = 0;
  /// Variables that this step leaves as they are; for train_mode.
  std::vector<std::string> frozen{};
  /// Of the required inputs, in order; for bind_inputs.
  std::vector<ValueType> input_types{};
  /// The model whose graph it is; for upgrade_opset, which needs its functions.
  Model* model = nullptr;
  /// The pass of this name is left out; for tests and comparisons.
  std::string_view without{};
  PassLog* log = nullptr;
};

/// One entry of a list.
struct Pass {
  std::string_view name;
  /// Changes the graph; returns whether it did. Null of what a build for certain models
  /// does without.
  bool (*run)(Graph& graph, PassContext& context) = nullptr;
  /// It runs for this purpose, in this precision, only.
  std::optional<Purpose> purpose{};
  std::optional<Precision> precision{};
  /// When it has changed something, its list starts again, until Limits::settled_nodes have been
  /// gone over.
  bool restarts = false;
  /// It runs only if the pass before it has changed something.
  bool follows_change = false;
  /// The op of Graft's own that it makes: without a kernel for that, it does not run.
  std::string_view makes{};
};

/// Passes in the order in which they run, and what the list is called.
struct Pipeline {
  std::string_view name;
  std::span<const Pass> passes;
};

/// A model's nodes in the newest form of their ops, in inference without Dropout.
extern const Pipeline kNewestForm;
/// Types and constants, until nothing changes: what follows once inputs are bound.
extern const Pipeline kSettle;
/// A graph for given inputs, settled.
extern const Pipeline kBound;
/// The same, and loops are unrolled, until nothing changes.
extern const Pipeline kUnrolled;
/// A graph for given inputs that must become one plan: a step's.
extern const Pipeline kStepShapes;
/// A model in the newest form, shapes open: what gradients would have to pass.
extern const Pipeline kOpenGradientPath;
/// The output types of a model as it is.
extern const Pipeline kOutputTypes;
/// A model for given inputs whose Gradient ops are lowered next.
extern const Pipeline kGradientModel;
/// Rewrites of the forward part, before there are gradients.
extern const Pipeline kForward;
/// What a Session runs, up to the plan.
extern const Pipeline kInference;
/// One op, called by itself.
extern const Pipeline kOneOp;
/// Before the loss is added, nodes as training wants them.
extern const Pipeline kTrainingForm;
/// Behind the loss, before gradients.
extern const Pipeline kForwardWithLoss;
/// Behind the loss, gradients and updates.
extern const Pipeline kWholeStep;
/// In the places of these three, for a step that other runtimes are to run: in ops of ONNX alone.
extern const Pipeline kExportedTrainingForm;
extern const Pipeline kExportedForward;
extern const Pipeline kExportedStep;
/// The last ones before kernels are chosen and memory is placed.
extern const Pipeline kPlanning;

/// All of the above.
std::span<const Pipeline* const> pipelines();

/// Runs a list on the graph; in debug builds, `verify` follows each pass. Returns whether anything
/// changed. Throws what the passes throw, and then leaves the graph as it is by then.
bool run_passes(const Pipeline& pipeline, Graph& graph, PassContext& context);

/// Runs what is no pass of a list but changes the graph between them, such as adding a loss, so
/// that it is verified and recorded like one. Returns what `stage` does.
bool run_stage(std::string_view name, Graph& graph, PassContext& context,
               const std::function<bool()>& stage);

}  // namespace graft::passes
