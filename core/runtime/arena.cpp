#include "core/runtime/arena.h"

#include "core/graph/order.h"
#include "core/passes/order_nodes.h"

namespace graft {

Demand memory_demand(const Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs) {
  Demand demand{.storage = assign_storage(graph, binds_outputs)};
  const std::vector<Storage>& storages = demand.storage.storages;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].place != Storage::Place::arena) continue;
    demand.lifetimes.push_back({storages[i].bytes, storages[i].first, storages[i].last});
    demand.storage_of_lifetime.push_back(i);
  }
  int step = 0;
  for (const Node* node : kernel_nodes(graph)) {
    const auto at = workspaces.find(node);
    demand.lifetimes.push_back({at == workspaces.end() ? 0 : at->second, step, step});
    ++step;
  }
  return demand;
}

Arena place(Demand demand) {
  const MemoryPlan plan = plan_memory(demand.lifetimes);
  const std::vector<std::size_t>& owner = demand.storage_of_lifetime;
  Arena arena{.storage = std::move(demand.storage)};
  arena.bytes = plan.arena_bytes;
  arena.lower_bound_bytes = plan.lower_bound_bytes;
  arena.storage_offsets.resize(arena.storage.storages.size());
  for (std::size_t i = 0; i < owner.size(); ++i) arena.storage_offsets[owner[i]] = plan.offsets[i];
  arena.workspace_offsets.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(owner.size()),
                                 plan.offsets.end());
  return arena;
}

Arena plan_arena(const Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs) {
  return place(memory_demand(graph, workspaces, binds_outputs));
}

Arena order_and_plan(Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs) {
  Arena given = plan_arena(graph, workspaces, binds_outputs);
  std::vector<Node*> before = node_order(graph);
  if (!passes::order_for_memory(graph)) return given;
  Demand demand = memory_demand(graph, workspaces, binds_outputs);
  // Where as much is alive at once, no placing helps.
  if (most_alive_bytes(demand.lifetimes) < given.bytes) {
    Arena other = place(std::move(demand));
    if (other.bytes < given.bytes) {
      other.order_before = std::move(before);
      return other;
    }
  }
  for (Node* node : before) graph.move(node, nullptr);  // not reorder(): they stood so
  return given;
}

}  // namespace graft
