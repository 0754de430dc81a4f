#pragma once

#include <vector>

#include "core/ops/builder.h"

namespace graft {

/// Whether it is an LSTM, a GRU or an RNN.
bool is_recurrent(const Node& node);

/// Writes such a node time by time in simple ops of ONNX, for runtimes that lack its gradient. All
/// shapes are known. Returns one value an output.
std::vector<Expr> unroll_recurrent(const Node& node, Builder& builder);

}  // namespace graft
