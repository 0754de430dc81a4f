#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft::passes {

/// Copies what `body` holds into `into`, before `before` (to the end when null). `arguments`: one
/// value a body input, in order; null, or missing at the end, where left out. Values get the names
/// prefix + own name, made unique. Returns what the body's outputs have become, null for an output
/// that is a left-out input. Tensors are shared.
std::vector<Value*> splice(const Graph& body, Graph& into, Node* before,
                           const std::vector<Value*>& arguments, const std::string& prefix);

/// The nodes of the graph and of the bodies in it.
std::uint64_t count_nodes(const Graph& graph);

/// Lets all readers of the node's outputs read `results` instead, and removes the node. Graph
/// outputs keep their names. Throws Error{model} if a result that is read is null.
void replace_node(Node& node, const std::vector<Value*>& results);

}  // namespace graft::passes
