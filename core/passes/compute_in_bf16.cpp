#include <algorithm>
#include <unordered_map>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

bool is_f32(const Value* value) {
  return value != nullptr && value->dtype() == DType::f32;
}

/// The f32 form of a bf16 value.
bool is_rounded(const Value* value) {
  const Node* const producer = value->producer();
  return producer != nullptr && producer->is("Cast") && producer->input(0)->dtype() == DType::bf16;
}

bool gains(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || !is_f32(node.output(0))) return false;
  using Kind = MixedPrecision::Kind;
  return def->mixed_precision.kind == Kind::product ||
         (def->mixed_precision.kind == Kind::follows && is_rounded(node.input(0)));
}

class Narrowing {
 public:
  explicit Narrowing(Graph& graph) : graph_(graph) {}

  void narrow(Node& node, const std::vector<int>& chosen) {
    Builder builder(graph_, &node, "bf16/");
    for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) {
      const bool is_meant = chosen.empty() || std::ranges::find(chosen, i) != chosen.end();
      if (is_meant && is_f32(node.input(i))) node.set_input(i, narrowed(builder, node.input(i)));
    }
    widen(node);
  }

 private:
  /// One copy serves all readers.
  Value* narrowed(Builder& builder, Value* value) {
    if (is_rounded(value)) return value->producer()->input(0);
    Value*& copy = narrowed_[value];
    if (copy == nullptr) copy = cast(builder.expr(value), DType::bf16).value();
    return copy;
  }

  void widen(Node& node) {
    Value* const output = node.output(0);
    output->set_type({DType::bf16, output->shape()});
    Builder builder(graph_, graph_.next(&node), "bf16/");
    // The cast reads the output only once all others read the cast.
    Value* const wide = cast(builder.expr(output), DType::f32).value();
    graph_.replace_all_uses(output, wide);
    wide->producer()->set_input(0, output);
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> narrowed_;
};

}  // namespace

bool compute_in_bf16(Graph& graph) {
  Narrowing narrowing(graph);
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node& node = *next;
    next = graph.next(&node);
    if (!gains(node)) continue;
    narrowing.narrow(node, OpRegistry::instance().get(node).mixed_precision.inputs);
    changed = true;
  }
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
