#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// What became of a model whose element type was changed.
struct PrecisionReport {
  std::size_t weights = 0;          ///< initializers that have the type now
  std::size_t clamped = 0;          ///< numbers that were beyond it, and are its largest now
  std::vector<std::string> stay{};  ///< nodes that compute in f32: "Conv node 'x': why"
};

/// Lets an f32 model compute in f16 or bf16, for runtimes and processors that have these: weights
/// become half as large. Inputs and outputs keep type and name, and are cast within. Nodes for
/// which the model's opset has no form in the type, those with bodies, and those of other domains
/// stay f32, between casts. Finite numbers beyond the type become its largest, so that no mask
/// becomes an infinity, and the only number of an f16 constant that would become 0, an epsilon, its
/// smallest.
///
/// Throws Error{argument} if the type is another one, or if nothing of the model is f32 and can
/// change; what inference throws.
PrecisionReport change_precision(Model& model, DType type);

}  // namespace graft::edit
