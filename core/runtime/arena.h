#pragma once

#include <vector>

#include "core/graph/number_table.h"
#include "core/runtime/memory_plan.h"
#include "core/runtime/storage.h"

namespace graft {

/// Scratch memory of each node's kernel.
using WorkspaceBytes = NodeTable<std::size_t>;

/// Where a graph's values and its kernels' scratch memory lie in one arena.
struct Arena {
  StorageMap storage;
  /// Where each storage starts; 0 for those that lie elsewhere.
  std::vector<std::size_t> storage_offsets;
  /// Where the scratch memory of each step starts.
  std::vector<std::size_t> workspace_offsets;
  std::size_t bytes = 0;
  /// The most bytes that are alive at one step.
  std::size_t lower_bound_bytes = 0;
  /// How the nodes stood before `order_and_plan` moved them; empty where it did not.
  std::vector<Node*> order_before{};
};

/// What must find a place in an arena: the storages that lie there, then the workspace of each
/// step.
struct Demand {
  StorageMap storage;
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> storage_of_lifetime;
};

/// Throws what assign_storage throws, and binds outputs as it does. All shapes must be known.
Demand memory_demand(const Graph& graph, const WorkspaceBytes& workspaces,
                     bool binds_outputs = false);

Arena place(Demand demand);

/// Finds what the graph demands and places it; throws what `memory_demand` throws.
Arena plan_arena(const Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs = false);

/// Puts the nodes into the order that frees memory first (passes::order_for_memory), if the arena
/// becomes smaller. Returns the arena.
Arena order_and_plan(Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs = false);

}  // namespace graft
