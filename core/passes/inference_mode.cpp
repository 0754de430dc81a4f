#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool is_read(const Value* value) {
  return value != nullptr && !value->is_unused();
}

}  // namespace

bool inference_mode(Graph& graph) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node& node = *next;
    next = graph.next(&node);
    if (!node.is("Dropout") || node.input(0) == nullptr || is_read(node.output(1))) continue;
    if (node.attributes.has("seed")) continue;  // its numbers are asked for
    graph.replace_all_uses(node.output(0), node.input(0));
    graph.remove(&node);
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
