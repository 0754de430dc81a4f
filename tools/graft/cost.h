#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/graph/model.h"
#include "core/passes/pass_log.h"
#include "train/train_step.h"

namespace graft::cli {

/// node_multiply_adds of all nodes. Nothing when that of one is not known.
std::optional<std::int64_t> multiply_adds(const Graph& graph);

/// The types of the required inputs with unknown first dims set to `batch`. Nothing if another dim
/// is unknown; then `missing` names the input.
std::optional<std::vector<ValueType>> bound_types(const Graph& graph, std::int64_t batch,
                                                  std::string* missing = nullptr);

/// The graph of a model in the newest form for inputs of these types: inferred and folded, its
/// nodes as the file has them.
std::unique_ptr<Graph> bound_graph(const Model& newest, std::vector<ValueType> types);

/// A target that fits the prediction: class indices, or floats of its type and shape.
ValueType target_type(const Loss& loss, const ValueType& prediction);

struct StepMemory {
  /// Activations, gradients and scratch memory, placed together.
  std::size_t arena_bytes = 0;
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_bytes = 0;
};

/// Plans a step of training the model, as TrainStep would, without running it. `log` gets a record
/// of what passes do. Throws what TrainStep throws.
StepMemory plan_step(const Model& model, const TrainOptions& options,
                     const std::vector<ValueType>& inputs, const ValueType& target,
                     passes::PassLog* log = nullptr);

/// The same for what a Session runs.
void plan_inference(const Model& model, const std::vector<ValueType>& inputs, passes::PassLog* log);

}  // namespace graft::cli
