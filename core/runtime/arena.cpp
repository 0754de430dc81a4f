#include "core/runtime/arena.h"

#include "core/base/at.h"
#include "core/graph/order.h"
#include "core/passes/order_nodes.h"

namespace graft {

namespace {

Demand memory_demand(const OperandTable& operands, std::span<const int> order,
                     const WorkspaceBytes& workspaces, bool binds_outputs) {
  Demand demand{.storage = assign_storage(operands, order, binds_outputs)};
  const std::vector<Storage>& storages = demand.storage.storages;
  demand.lifetimes.reserve(storages.size() + order.size());
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].place != Storage::Place::arena) continue;
    demand.lifetimes.push_back({storages[i].bytes, storages[i].first, storages[i].last});
    demand.storage_of_lifetime.push_back(i);
  }
  int step = 0;
  for (const int place : order) {
    const OperandTable::Item& item = at(operands.items(), place);
    if (item.is_view) continue;
    demand.lifetimes.push_back({workspaces[*item.node], step, step});
    ++step;
  }
  return demand;
}

}  // namespace

Demand memory_demand(const Graph& graph, const WorkspaceBytes& workspaces, bool binds_outputs) {
  const OperandTable operands(graph);
  return memory_demand(operands, operands.given_order(), workspaces, binds_outputs);
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
  const OperandTable operands(graph);
  Demand given = memory_demand(operands, operands.given_order(), workspaces, binds_outputs);
  const std::vector<int> order = passes::order_for_memory(operands);
  if (order.empty()) return place(std::move(given));
  Demand other = memory_demand(operands, order, workspaces, binds_outputs);
  const std::size_t least_given = most_alive_bytes(given.lifetimes);
  const std::size_t least_other = most_alive_bytes(other.lifetimes);
  const auto take_other = [&](Arena arena) {
    arena.order_before = node_order(graph);
    passes::stand_in_order(graph, operands, order);
    return arena;
  };
  const auto take_smaller = [&](Arena by_given, Arena by_other) {
    return by_other.bytes < by_given.bytes ? take_other(std::move(by_other)) : std::move(by_given);
  };
  // What looks better is placed first. Where it takes less than is alive at once by the other,
  // placing that helps nothing.
  if (least_other < least_given) {
    Arena by_other = place(std::move(other));
    if (by_other.bytes < least_given) return take_other(std::move(by_other));
    return take_smaller(place(std::move(given)), std::move(by_other));
  }
  Arena by_given = place(std::move(given));
  if (by_given.bytes <= least_other) return by_given;
  return take_smaller(std::move(by_given), place(std::move(other)));
}

}  // namespace graft
