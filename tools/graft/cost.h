#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/graph/model.h"
#include "optim/optimizer.h"

namespace graft::cli {

/// node_multiply_adds of all nodes. Nothing when that of one is not known.
std::optional<std::int64_t> multiply_adds(const Graph& graph);

/// The types of the required inputs with unknown first dims set to `batch`. Nothing if another dim
/// is unknown; then `missing` names the input.
std::optional<std::vector<ValueType>> bound_types(const Graph& graph, std::int64_t batch,
                                                  std::string* missing = nullptr);

/// The working copy of a model in the newest form, for inputs of these types: inferred and folded.
std::unique_ptr<Graph> bound_graph(const Model& newest, const std::vector<ValueType>& types);

/// A target that fits the prediction: class indices, or floats of its type and shape.
ValueType target_type(const Loss& loss, const ValueType& prediction);

struct StepMemory {
  /// Activations, gradients and scratch memory, placed together.
  std::size_t arena_bytes = 0;
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_bytes = 0;
};

/// Plans a training step, without running it. Throws what planning throws.
StepMemory plan_step_memory(const Model& newest, const Loss& loss, const Optimizer& optimizer,
                            const std::vector<std::string>& parameters,
                            const std::vector<ValueType>& inputs, const ValueType& target);

}  // namespace graft::cli
