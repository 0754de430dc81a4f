#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft::cli {

/// The nodes that keep gradients of `output` from parameters, as "node: reason". `graph`: in the
/// newest form, inferred.
std::vector<std::string> what_stops_gradients(const Graph& graph, const Value* output,
                                              const std::vector<const Value*>& parameters);

}  // namespace graft::cli
