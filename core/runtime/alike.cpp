#include "core/runtime/alike.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/graph/same.h"

namespace graft {
namespace {

/// A kernel may be made for the elements of an initializer that is no variable.
bool may_be_looked_at(const Value& value) {
  return value.is_initializer() && !value.is_variable;
}

/// Where kernels may look, at a few, axes say, both have the same. Many are weights, of which
/// seldom two are equal.
bool are_looked_at_alike(const Value& a, const Value& b) {
  constexpr std::int64_t kFew = 8;
  if (!may_be_looked_at(a) && !may_be_looked_at(b)) return true;
  return may_be_looked_at(a) && may_be_looked_at(b) && a.initializer().size() <= kFew &&
         equal_bits(a.initializer(), b.initializer());
}

bool are_alike(const Value* a, const Value* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->type() == b->type() && a->layout == b->layout && are_looked_at_alike(*a, *b);
}

}  // namespace

bool are_alike(const Node& a, const Node& b) {
  if (!a.is(b.op_type(), b.domain()) || a.output_count() != b.output_count()) return false;
  for (int i = 0; i < a.output_count(); ++i) {
    if (!are_alike(a.output(i), b.output(i))) return false;
  }
  const auto alike = [](const Value* one, const Value* other) { return are_alike(one, other); };
  return std::ranges::equal(a.inputs(), b.inputs(), alike) && are_same(a.attributes, b.attributes);
}

std::size_t alike_hash(const Node& node) {
  constexpr std::size_t kFactor = 31;
  std::size_t hash = std::hash<std::string_view>()(node.op_type());
  const auto add = [&](const Value* value) {
    hash *= kFactor;
    if (value == nullptr || !value->shape()) return;
    for (const Dim& dim : *value->shape()) {
      hash = kFactor * hash + static_cast<std::size_t>(dim.value());
    }
  };
  for (const Value* input : node.inputs()) add(input);
  for (int i = 0; i < node.output_count(); ++i) add(node.output(i));
  return hash;
}

}  // namespace graft
