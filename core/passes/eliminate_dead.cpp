#include <ranges>

#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool is_needed(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def != nullptr && def->updates_state()) return true;
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) return true;
  }
  return false;
}

}  // namespace

bool eliminate_dead(Graph& graph) {
  bool changed = false;
  auto at = graph.nodes().end();
  while (at != graph.nodes().begin()) {
    Node* const node = std::prev(at)->get();
    if (is_needed(*node)) {
      --at;
    } else {
      graph.remove(node);  // `at` stays valid: it stands behind the removed node
      changed = true;
    }
  }
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* initializer : std::views::reverse(initializers)) {  // as a graph looks for them
    if (!initializer->is_unused() || initializer->is_graph_input() || initializer->is_variable) {
      continue;
    }
    graph.remove_initializer(initializer);
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
