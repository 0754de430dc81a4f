#pragma once

#include "core/graph/graph.h"

namespace graft::passes {

/// The bytes of all constants that a graph came with, bodies and attributes included; elements that
/// several share count once. Strings count with their characters.
double constant_bytes(const Graph& graph);

/// What evaluating the node costs at most, in bytes read and written or work that takes as long.
/// All its inputs must be constants, or read for their shapes alone, and unless its kernel is a
/// dynamic one, the shapes of its outputs must be known.
double fold_cost(const Node& node);

}  // namespace graft::passes
