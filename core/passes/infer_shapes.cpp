#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Infers one node; where inference knows less than the declared type, the declared one stays.
bool infer_node(Node& node) {
  std::vector<ValueType> declared;
  for (int i = 0; i < node.output_count(); ++i) {
    declared.push_back(node.output(i) == nullptr ? ValueType{} : node.output(i)->type());
  }
  infer(node);
  bool changed = false;
  for (int i = 0; i < node.output_count(); ++i) {
    Value* const output = node.output(i);
    if (output == nullptr) continue;
    const ValueType& before = at(declared, i);
    if (output->dtype() == DType::undefined || !output->shape()) {
      ValueType type = output->type();
      if (type.dtype == DType::undefined) type.dtype = before.dtype;
      if (!type.shape) type.shape = before.shape;
      output->set_type(std::move(type));
    }
    changed |= output->type() != before;
  }
  return changed;
}

/// A branch that is never taken may not fit the shapes at hand: whoever runs a body finds out.
bool infer_body(Graph& body) {
  try {
    return infer_shapes(body);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

bool infer_shapes(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](Graph& body) { changed |= infer_body(body); });
    changed |= infer_node(*node);
  }
  return changed;
}

}  // namespace graft::passes
