#pragma once

#include "core/graph/model.h"

namespace graft {

/// Checks what must hold in every graph, bodies included:
/// - inputs, initializers and outputs of nodes belong to the graph and say so; their names are
///   unique and not empty; a name leads every reader to the value that it reads;
/// - use lists hold each reading input once and nothing else; graph outputs are marked as such;
/// - a node reads only what stands before it: inputs, initializers, outputs of earlier nodes, and
///   in a body what stands before the node that owns the body;
/// - an initializer has the element type of its value and the dims that the value's shape states;
/// - attribute names are unique within a node; each body knows its parent and belongs to one node,
/// or
///   to several of its parent if it reads its own values alone and has no bodies;
/// - graph outputs belong to the graph or to an outer one, and are computed by then.
/// Types of computed values are not looked at: that takes the ops' inference.
/// Throws Error{model} naming graph, node and value.
void verify(const Graph& graph);

/// The same for the graph and the function bodies; functions are unique, and no domain is imported
/// in two versions.
void verify(const Model& model);

}  // namespace graft
