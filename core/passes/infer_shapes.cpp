#include <algorithm>

#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Infers one node; where inference knows less than the declared type, the declared one stays.
/// `declared` serves all nodes, so that it seldom allocates.
bool infer_node(Node& node, std::vector<ValueType>& declared) {
  const auto outputs = static_cast<std::size_t>(node.output_count());
  declared.resize(std::max(declared.size(), outputs));
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr) at(declared, i) = node.output(i)->type();
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
  std::vector<ValueType> declared;
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](Graph& body) { changed |= infer_body(body); });
    changed |= infer_node(*node, declared);
  }
  return changed;
}

}  // namespace graft::passes
