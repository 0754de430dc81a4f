#pragma once

#include "core/graph/graph.h"

namespace graft::passes {

/// Writes LSTM, GRU and RNN time by time in simple ops, so that their gradients are simple ops,
/// too. All shapes must be known.
bool unroll_recurrent(Graph& graph);

}  // namespace graft::passes
