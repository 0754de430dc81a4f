#pragma once

#include "core/graph/graph.h"

namespace graft::passes {

/// Lets each update of a variable run as soon as its gradient is there and nobody reads the
/// variable any more: gradients then need not wait for the end of the step.
bool move_updates(Graph& graph);

/// The same for every node that frees more memory than it takes, the one that frees most first; the
/// others keep their order. That need not make the whole plan smaller: its caller compares.
bool order_for_memory(Graph& graph);

}  // namespace graft::passes
