#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/splice_internal.h"

namespace graft::passes {

bool choose_branches(Graph& graph) {
  bool changed = false;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node& node = **next++;  // which may go
    const Tensor condition = node.is("If") ? constant_of(node.input(0)) : Tensor();
    if (condition.dtype() != DType::boolean || condition.size() != 1) continue;
    const bool is_true = condition.values<const bool>()[0];
    const Attribute* const branch = node.attributes.find(is_true ? "then_branch" : "else_branch");
    const auto* const body =
        branch == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&branch->value);
    if (body == nullptr) continue;
    const std::shared_ptr<Graph> kept = *body;  // the node goes
    const std::string prefix = (node.name().empty() ? "if" : node.name()) + "/";
    replace_node(node, splice(*kept, graph, &node, {}, prefix));
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
