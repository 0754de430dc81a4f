#include "core/graph/order.h"

#include "core/base/pointer_map.h"

namespace graft {

std::vector<Node*> node_order(const Graph& graph) {
  std::vector<Node*> order;
  order.reserve(graph.node_count());
  for (const auto& node : graph.nodes()) order.push_back(node.get());
  return order;
}

void reorder(Graph& graph, const std::vector<Node*>& order) {
  PointerMap<Node, std::size_t> ranks;
  ranks.reserve(order.size());
  for (const Node* node : order) {
    if (&node->graph() == &graph) ranks.try_emplace(node, ranks.size());
  }
  if (ranks.size() != graph.node_count() || order.size() != graph.node_count()) {
    fail(ErrorKind::argument, "an order of graph '", graph.name, "' names ", ranks.size(),
         " of its ", graph.node_count(), " nodes in ", order.size(), " places");
  }
  for (const Node* node : order) {
    for_each_read(*node, [&](const Value& value) {
      if (&value.graph() != &graph || value.producer() == nullptr) return;
      if (ranks.at(value.producer()) >= ranks.at(node)) {
        fail(ErrorKind::argument, node->label(), " would run before ", value.producer()->label(),
             ", whose output it reads");
      }
    });
  }
  for (Node* node : order) graph.move(node, nullptr);
}

}  // namespace graft
