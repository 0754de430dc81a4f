#pragma once

#include "core/graph/graph.h"
#include "core/ops/builder.h"

// Ops of the domain com.microsoft into which onnxruntime fuses others in the files that it
// optimizes, and those of its weights of few bits. They are written in standard ops again, so that
// they train. Source: github.com/microsoft/onnxruntime, docs/ContribOperators.md.
namespace graft::passes {

/// Whether the node calls one of these ops.
bool is_microsoft(const Node& node);

/// Writes all of them, in bodies too, in standard ops. The other nodes are in their newest form;
/// types are inferred on the way. Throws Error{unsupported}, naming the node, for inputs and
/// attributes that Graft has no form for; what inference throws. Whether there was one.
bool expand_microsoft(Graph& graph);

/// The weight of a MatMulNBits as numbers, [K,N], of what the node reads. Throws as above.
Expr unpacked_weight(const Node& node, Builder& builder);

}  // namespace graft::passes
