#include "core/runtime/alike.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "core/base/pointer_map.h"
#include "core/graph/graph.h"

namespace graft {
namespace {

template <class T>
constexpr bool kIsCompared =
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<std::string>>;

bool are_same(const Attribute& a, const Attribute& b);

/// Whether two bodies, of chains say, compute the same of what enters them, and read nothing else.
bool are_same(const Graph& a, const Graph& b) {
  PointerMap<Value, const Value*> twins;
  const auto pair = [&](const Value* one, const Value* other) {
    if (one == nullptr || other == nullptr) return one == other;
    twins[one] = other;
    return one->type() == other->type() && one->layout == other->layout;
  };
  const auto are_paired = [&](const Value* one, const Value* other) {
    if (one == nullptr || other == nullptr) return one == other;
    const Value* const* const twin = twins.find(one);
    return twin != nullptr && *twin == other;
  };
  const auto pair_constants = [&](const Value* one, const Value* other) {
    return pair(one, other) && equal_bits(one->initializer(), other->initializer());
  };
  const auto pair_nodes = [&](const auto& one, const auto& other) {
    if (!one->is(other->op_type(), other->domain())) return false;
    if (one->output_count() != other->output_count()) return false;
    if (!std::ranges::equal(one->inputs(), other->inputs(), are_paired)) return false;
    for (int i = 0; i < one->output_count(); ++i) {
      if (!pair(one->output(i), other->output(i))) return false;
    }
    return std::ranges::equal(
        one->attributes, other->attributes,
        [](const Attribute& x, const Attribute& y) { return are_same(x, y); });
  };
  return std::ranges::equal(a.inputs(), b.inputs(), pair) &&
         std::ranges::equal(a.initializers(), b.initializers(), pair_constants) &&
         std::ranges::equal(a.nodes(), b.nodes(), pair_nodes) &&
         std::ranges::equal(a.outputs(), b.outputs(), are_paired);
}

/// Floats by their bits: 0 is not -0. Tensors and what only io reads count as different.
bool are_same(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&]<class T>(const T& one) {
        const T& other = std::get<T>(b.value);
        const auto bits = [](float number) { return std::bit_cast<std::uint32_t>(number); };
        if constexpr (std::is_same_v<T, float>) {
          return bits(one) == bits(other);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          return std::ranges::equal(one, other, {}, bits, bits);
        } else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
          return are_same(*one, *other);
        } else if constexpr (kIsCompared<T>) {
          return one == other;
        } else {
          return false;
        }
      },
      a.value);
}

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
  const auto same = [](const Attribute& one, const Attribute& other) {
    return are_same(one, other);
  };
  return std::ranges::equal(a.inputs(), b.inputs(), alike) &&
         std::ranges::equal(a.attributes, b.attributes, same);
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
