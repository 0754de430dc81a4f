#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/ops/operand_table.h"

namespace graft::passes {

/// Lets each update of a variable run as soon as its gradient is there and nobody reads the
/// variable any more: gradients then need not wait for the end of the step.
bool move_updates(Graph& graph);

/// The same for every node that frees more memory than it takes, the one that frees most first; the
/// others keep their order. That need not make the whole plan smaller: its caller compares.
bool order_for_memory(Graph& graph);
/// The order in which the items would then stand; empty if they do.
std::vector<int> order_for_memory(const OperandTable& operands);

/// Lets the nodes of the graph, which the items name, stand in this order, of all of them.
void stand_in_order(Graph& graph, const OperandTable& operands, const std::vector<int>& order);

}  // namespace graft::passes
