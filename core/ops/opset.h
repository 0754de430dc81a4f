#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace graft {

/// The oldest opset in which all nodes of ONNX, those of bodies too, stand in the form that the
/// graph has: the newest (passes::upgrade_opset). Versions that only brought types do not count.
std::int64_t oldest_opset(const Graph& graph);

}  // namespace graft
