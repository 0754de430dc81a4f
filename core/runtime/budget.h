#pragma once

#include <vector>

#include "core/passes/recompute.h"
#include "core/runtime/arena.h"

namespace graft {

/// A step that fits, and the copies of nodes that its graph now holds.
struct BudgetedArena {
  Arena arena;
  std::vector<passes::Repeat> repeats;
};

/// Lets the backward part of a training step compute again what it cannot keep in an arena of
/// `budget` bytes, at as little cost as is found. The graph's first output must be the loss; nodes
/// behind the one that makes it are the backward part. Updates must stand as early as they can
/// (passes::move_updates): a copy stands before its first reader, and if that were an update late
/// in the step, it could read a variable that has been updated by then. `workspaces` gets entries
/// for the copies. The search depends on the graph alone, not on time, so equal graphs give equal
/// plans. Throws Error{memory} naming the least bytes that work, which a budget of so many then
/// gets; the graph stays as it was.
BudgetedArena fit_budget(Graph& graph, WorkspaceBytes& workspaces, std::size_t budget);

/// Lets the backward part of a training step compute again what costs little, as long as the copies
/// together cost at most `share` of what the step does (cost_in_bytes) and the arena becomes
/// noticeably smaller. The graph as for fit_budget.
BudgetedArena recompute_cheap_values(Graph& graph, WorkspaceBytes& workspaces, double share);

}  // namespace graft
