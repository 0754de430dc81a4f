#include "core/passes/unroll_recurrent.h"

#include "core/ops/unroll_recurrent.h"
#include "core/passes/replace_node_internal.h"

namespace graft::passes {

bool unroll_recurrent(Graph& graph) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    if (!is_recurrent(*node)) continue;
    Builder builder(graph, node);
    replace_node(graph, node, graft::unroll_recurrent(*node, builder));
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
