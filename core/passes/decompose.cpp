#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

bool decompose_once(Graph& graph) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    const OpDef* const def = OpRegistry::instance().find(*node);
    if (def == nullptr || def->backward.decomposition() == nullptr) continue;
    Builder builder(graph, node);
    const std::vector<Expr> results = def->backward.decomposition()->expand(*node, builder);
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const output = node->output(i);
      if (output != nullptr && !output->is_unused()) {
        graph.replace_all_uses(output, results.at(static_cast<std::size_t>(i)).value());
      }
    }
    graph.remove(node);
    changed = true;
  }
  return changed;
}

}  // namespace

bool decompose(Graph& graph) {
  bool changed = false;
  while (decompose_once(graph)) changed = true;  // a decomposition may use decomposed ops
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
