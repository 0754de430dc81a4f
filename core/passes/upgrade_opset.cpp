#include <set>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

void collect_unknown(const Graph& graph, std::set<std::string>& unknown) {
  for (const auto& node : graph.nodes()) {
    if (OpRegistry::instance().find(*node) == nullptr) {
      unknown.insert((node->domain().empty() ? "" : node->domain() + ".") + node->op_type() + " (" +
                     node->label() + ")");
    }
    for_each_body(*node, [&](const Graph& body) { collect_unknown(body, unknown); });
  }
}

bool is_dead(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) return false;
  }
  return true;
}

bool upgrade_graph(Graph& graph, std::int64_t from) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    for_each_body(*node, [&](Graph& body) { changed |= upgrade_graph(body, from); });
    const OpDef& def = OpRegistry::instance().get(*node);
    if (def.upgrade != nullptr && node->domain().empty()) {
      Builder builder(graph, node);
      const bool was_dead = is_dead(*node);
      def.upgrade(*node, from, builder);
      if (!was_dead && is_dead(*node)) graph.remove(node);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool upgrade_opset(Model& model) {
  std::set<std::string> unknown;
  collect_unknown(model.graph(), unknown);
  if (!unknown.empty()) {
    std::string list;
    for (const std::string& op : unknown) list += (list.empty() ? "" : ", ") + op;
    fail(ErrorKind::unsupported, "ops not known to Graft: ", list);
  }
  const std::int64_t from = model.opset();
  if (from != 0 && from < kOldestOpset) {
    fail(ErrorKind::unsupported, "the model uses opset ", from, "; Graft knows ", kOldestOpset,
         " to ", kNewestOpset, ": convert it with onnx.version_converter");
  }
  const bool changed = upgrade_graph(model.graph(), from);
  model.set_opset("", kNewestOpset);
  return changed;
}

}  // namespace graft::passes
