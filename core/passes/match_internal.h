#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace graft::passes {

// Questions that passes ask about the neighbourhood of a value.

/// The node that alone reads the value, which is no output of the graph; null if there is none.
Node* only_reader(const Value* value);

/// The number of a one-element constant.
std::optional<double> scalar_of(const Value* value);

/// Nothing of no value, or of one whose shape is not known.
std::optional<Shape> shape_of(const Value* value);

}  // namespace graft::passes
