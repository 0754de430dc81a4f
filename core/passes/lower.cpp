#include <set>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/replace_node_internal.h"

namespace graft::passes {
namespace {

std::vector<Expr> lowered(Graph& graph, Node* node) {
  const OpDef& def = OpRegistry::instance().get(*node);
  Builder builder(graph, node);
  return def.lower == nullptr ? std::vector<Expr>() : def.lower(*node, builder);
}

}  // namespace

bool lower(Graph& graph) {
  bool changed = false;
  std::set<std::string> refused;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    if (node->domain() != kInternalDomain) continue;
    const std::vector<Expr> parts = lowered(graph, node);
    if (parts.empty()) {
      refused.insert(node->op_type());
    } else {
      replace_node(graph, node, parts);
      changed = true;
    }
  }
  if (refused.empty()) return changed;
  std::string list;
  for (const std::string& op : refused) list += (list.empty() ? "" : ", ") + op;
  fail(ErrorKind::unsupported, "this step cannot be written in ops of ONNX: it needs ", list);
}

}  // namespace graft::passes
