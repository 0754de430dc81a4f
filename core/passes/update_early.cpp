#include <algorithm>
#include <unordered_map>

#include "core/ops/registry.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Every output is the new content of an input.
bool only_updates(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || !def->updates_state()) return false;
  for (int i = 0; i < node.output_count(); ++i) {
    const bool is_state = std::ranges::any_of(def->aliases, [&](const Alias& alias) {
      return alias.kind == AliasKind::state && alias.output == i;
    });
    if (node.output(i) != nullptr && !is_state) return false;
  }
  return true;
}

class Order {
 public:
  explicit Order(const Graph& graph) {
    for (const auto& node : graph.nodes()) at_[node.get()] = static_cast<int>(at_.size());
  }
  /// A node within a body runs when the node runs that has the body: unknown here, so never.
  int of(const Node* node) const {
    const auto found = at_.find(node);
    return found == at_.end() ? static_cast<int>(at_.size()) : found->second;
  }

 private:
  std::unordered_map<const Node*, int> at_;
};

/// The last node that must run before the update: it makes an input or reads what is overwritten.
/// Null when the update cannot move.
Node* last_before(const Graph& graph, const Node& update) {
  const Order order(graph);
  int last = -1;
  const auto consider = [&](const Node* node) {
    if (node != nullptr && node != &update) last = std::max(last, order.of(node));
  };
  for (const Value* input : update.inputs()) {
    if (input != nullptr) consider(input->producer());
  }
  for (const Alias& alias : OpRegistry::instance().get(update).aliases) {
    if (const Value* const state = update.input(alias.input)) {
      for_each_memory_reader(state, [&](const Node& reader) { consider(&reader); });
    }
  }
  if (last < 0 || last + 1 >= order.of(&update)) return nullptr;
  return std::next(graph.nodes().begin(), last)->get();
}

}  // namespace

bool update_early(Graph& graph) {
  std::vector<Node*> updates;
  for (const auto& node : graph.nodes()) {
    if (only_updates(*node)) updates.push_back(node.get());
  }
  bool changed = false;
  for (Node* const update : updates) {
    if (Node* const last = last_before(graph, *update)) {
      graph.move(update, graph.next(last));
      changed = true;
    }
  }
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
