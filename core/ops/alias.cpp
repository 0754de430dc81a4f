#include "core/ops/alias.h"

#include "core/ops/registry.h"

namespace graft {

const Alias* find_alias(const Node& node, int output, AliasKind kind) {
  return find_alias(OpRegistry::instance().get(node).aliases, output, kind);
}

const Alias* find_alias(const std::vector<Alias>& of_op, int output, AliasKind kind) {
  for (const Alias& alias : of_op) {
    if (alias.output == output && alias.kind == kind) return &alias;
  }
  return nullptr;
}

bool is_view(const Node& node) {
  return find_alias(node, 0, AliasKind::view) != nullptr;
}

const Value* origin(const Value* value) {
  while (value->producer() != nullptr && is_view(*value->producer())) {
    value = value->producer()->input(0);
  }
  return value;
}

bool updates_state(const Node& node) {
  return OpRegistry::instance().get(node).updates_state();
}

}  // namespace graft
