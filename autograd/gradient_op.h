#pragma once

#include "core/graph/graph.h"

namespace graft::autograd {

/// Whether the graph has a Gradient node of ai.onnx.preview.training at its top.
bool has_gradient_ops(const Graph& graph);

/// Replaces Gradient nodes by the nodes that compute what they ask for: the gradient of the sum of
/// value `y` with respect to the values `xs`. A later one may differentiate what an earlier one
/// gives. The graph must be in the newest form, inferred, with all shapes known; dead nodes must
/// not have been removed, since a name is no use of a value. Throws Error{unsupported} if a node is
/// given other values than those that it names (a point of its own to differentiate at), or if
/// gradients cannot pass; Error{model} for names that no value has. Source:
/// https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Gradient.html
void lower_gradient_ops(Graph& graph);

}  // namespace graft::autograd
