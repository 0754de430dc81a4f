#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// To which layer each parameter belongs, 0 the first that reads one. A layer is what names say:
/// all up to the first part that is a number ("encoder.layer.3" of "encoder.layer.3.fc.weight"),
/// else all but the last part ("conv1" of "conv1.weight"); parts are separated by '.' or '/'. A
/// name without parts, as exporters make them, belongs to the layer of the next parameter that has
/// one or, failing that, to those that the same node reads.
std::vector<int> layer_order(const Graph& graph, const std::vector<std::string>& parameters);

}  // namespace graft
