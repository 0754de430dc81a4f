#include "core/runtime/arena.h"

#include "core/graph/order.h"
#include "core/passes/pass.h"

namespace graft {

Arena plan_arena(const Graph& graph, const WorkspaceBytes& workspaces) {
  Arena arena{.storage = assign_storage(graph)};
  const std::vector<Storage>& storages = arena.storage.storages;
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> owner;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].place != Storage::Place::arena) continue;
    lifetimes.push_back({storages[i].bytes, storages[i].first, storages[i].last});
    owner.push_back(i);
  }
  int step = 0;
  for (const Node* node : kernel_nodes(graph)) {
    const auto at = workspaces.find(node);
    lifetimes.push_back({at == workspaces.end() ? 0 : at->second, step, step});
    ++step;
  }
  const MemoryPlan plan = plan_memory(lifetimes);
  arena.bytes = plan.arena_bytes;
  arena.lower_bound_bytes = plan.lower_bound_bytes;
  arena.storage_offsets.resize(storages.size());
  for (std::size_t i = 0; i < owner.size(); ++i) arena.storage_offsets[owner[i]] = plan.offsets[i];
  arena.workspace_offsets.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(owner.size()),
                                 plan.offsets.end());
  return arena;
}

Arena order_and_plan(Graph& graph, const WorkspaceBytes& workspaces) {
  Arena given = plan_arena(graph, workspaces);
  const std::vector<Node*> before = node_order(graph);
  if (!passes::order_for_memory(graph)) return given;
  Arena other = plan_arena(graph, workspaces);
  if (other.bytes < given.bytes) return other;
  reorder(graph, before);
  return given;
}

}  // namespace graft
