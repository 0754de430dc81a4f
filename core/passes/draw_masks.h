#pragma once

#include "core/graph/graph.h"

namespace graft::passes {

/// Writes each Dropout that trains in ops of ONNX, by a mask that RandomUniform draws and that its
/// gradient shares. All shapes must be known.
bool draw_masks(Graph& graph);

}  // namespace graft::passes
