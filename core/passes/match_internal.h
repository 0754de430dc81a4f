#pragma once

#include <optional>

#include "core/graph/graph.h"
#include "core/ops/infer.h"

namespace graft::passes {

/// The node that alone reads the value; null when there is none, or several, or the caller reads it
/// too.
inline Node* only_reader(const Value* value) {
  return value->uses().size() == 1 && !value->is_graph_output() ? value->uses().front().node
                                                                : nullptr;
}

/// The number of a one-element constant.
inline std::optional<double> scalar_of(const Value* value) {
  const Tensor tensor = constant_of(value);
  if (!tensor.defined() || tensor.size() != 1) return std::nullopt;
  return to_double(tensor).front();
}

}  // namespace graft::passes
