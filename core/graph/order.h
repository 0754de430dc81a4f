#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// The nodes in the order in which they run.
std::vector<Node*> node_order(const Graph& graph);

/// Lets the nodes run in this order, which names each of them once. Throws Error{argument} if it
/// does not, or if a node would run before one whose output it reads; the order then stays.
void reorder(Graph& graph, const std::vector<Node*>& order);

}  // namespace graft
