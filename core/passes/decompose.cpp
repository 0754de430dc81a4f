#include "core/ops/builder.h"
#include "core/ops/cost.h"
#include "core/ops/kernel.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/replace_node_internal.h"

namespace graft::passes {
namespace {

template <class Wants>
bool decompose_once(Graph& graph, const Wants& wants) {
  bool changed = false;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node* const node = (next++)->get();  // which may go
    const OpDef* const def = OpRegistry::instance().find(*node);
    if (def == nullptr || def->backward.decomposition() == nullptr || !wants(*node)) continue;
    Builder builder(graph, node);
    replace_node(graph, node, def->backward.decomposition()->expand(*node, builder));
    changed = true;
  }
  return changed;
}

}  // namespace

bool decompose(Graph& graph) {
  bool changed = false;
  const auto all = [](const Node&) { return true; };
  while (decompose_once(graph, all)) changed = true;  // a decomposition may use decomposed ops
  return changed;
}

bool decompose_where_needed(Graph& graph, Device& device) {
  bool changed = false;
  const auto lacks_kernel = [&](const Node& node) {
    return has_known_shapes(node) && prepare_all_kernels(node, device).empty();
  };
  while (decompose_once(graph, lacks_kernel)) changed = true;
  return changed;
}

}  // namespace graft::passes
