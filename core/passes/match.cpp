#include "core/ops/infer.h"
#include "core/passes/match_internal.h"

namespace graft::passes {

Node* only_reader(const Value* value) {
  return value->uses().size() == 1 && !value->is_graph_output() ? value->uses().front().node
                                                                : nullptr;
}

std::optional<double> scalar_of(const Value* value) {
  const Tensor tensor = constant_of(value);
  if (!tensor.defined() || tensor.size() != 1) return std::nullopt;
  return to_double(tensor).front();
}

std::optional<Shape> shape_of(const Value* value) {
  return value != nullptr && value->shape() ? value->shape()->known() : std::nullopt;
}

}  // namespace graft::passes
