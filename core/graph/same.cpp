#include "core/graph/same.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/base/pointer_map.h"

namespace graft {
namespace {

template <class T>
constexpr bool kIsCompared =
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<std::string>>;

}  // namespace

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
    return are_same(one->attributes, other->attributes);
  };
  return std::ranges::equal(a.inputs(), b.inputs(), pair) &&
         std::ranges::equal(a.initializers(), b.initializers(), pair_constants) &&
         std::ranges::equal(a.nodes(), b.nodes(), pair_nodes) &&
         std::ranges::equal(a.outputs(), b.outputs(), are_paired);
}

bool are_same(const Attributes& a, const Attributes& b) {
  const auto same = [](const Attribute& x, const Attribute& y) { return are_same(x, y); };
  return a.shares_list(b) || std::ranges::equal(a, b, same);
}

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
          return one == other || are_same(*one, *other);
        } else if constexpr (kIsCompared<T>) {
          return one == other;
        } else {
          return false;
        }
      },
      a.value);
}

}  // namespace graft
