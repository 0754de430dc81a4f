#include <algorithm>

#include "core/ops/registry.h"
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

bool is_view(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && std::ranges::any_of(def->aliases, [](const Alias& alias) {
           return alias.kind == AliasKind::view;
         });
}

const Value* origin(const Value* value) {
  while (value->producer() != nullptr && is_view(*value->producer())) {
    value = value->producer()->input(0);
  }
  return value;
}

}  // namespace graft::passes
