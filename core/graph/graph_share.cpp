// What values and nodes of a graph have in common stands once.
#include <algorithm>
#include <bit>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/graph/graph.h"
#include "core/graph/same.h"

namespace graft {
namespace {

constexpr std::size_t kFactor = 31;  // of hashes

/// What was seen lately, by a hash.
template <class T>
T& recent(std::vector<T>& all, std::size_t hash) {
  constexpr std::size_t kRecent = 64;
  all.resize(kRecent);
  return all[hash % kRecent];
}

/// Neither tensors, which would live on, nor bodies, which belong to their node, nor what only io
/// reads.
bool is_plain(const Attribute& attribute) {
  const auto is_plain_value = []<class T>(const T&) {
    return !std::is_same_v<T, OpaqueValue> && !std::is_same_v<T, Tensor> &&
           !std::is_same_v<T, std::vector<Tensor>> && !std::is_same_v<T, std::shared_ptr<Graph>> &&
           !std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>;
  };
  return attribute.reference.empty() && attribute.preserved.empty() &&
         std::visit(is_plain_value, attribute.value);
}

/// Of a plain attribute.
std::size_t hash_of(const Attribute& attribute) {
  std::size_t hash = std::hash<std::string>()(attribute.name);
  if (const auto* const number = std::get_if<std::int64_t>(&attribute.value)) {
    hash = kFactor * hash + static_cast<std::size_t>(*number);
  } else if (const auto* const real = std::get_if<float>(&attribute.value)) {
    hash = kFactor * hash + std::bit_cast<std::uint32_t>(*real);
  } else if (const auto* const list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    for (const std::int64_t one : *list) hash = kFactor * hash + static_cast<std::size_t>(one);
  }
  return hash;
}

}  // namespace

SymShape Graph::share_dims(SymShape shape) {
  if (parent_ != nullptr || shape.rank() == 0) return shape;  // bodies are small, and many
  std::size_t hash = 0;
  for (const Dim& dim : std::as_const(shape)) {
    hash = kFactor * hash + static_cast<std::size_t>(dim.value());
  }
  SymShape& found = recent(recent_shapes_, hash);
  if (found != shape) found = std::move(shape);
  return found;
}

Attributes Graph::share_list(Attributes attributes) {
  if (parent_ != nullptr || attributes.empty()) return attributes;  // as above
  if (!std::ranges::all_of(attributes, is_plain)) return attributes;
  std::size_t hash = 0;
  for (const Attribute& attribute : attributes) hash = kFactor * hash + hash_of(attribute);
  Attributes& found = recent(recent_attributes_, hash);
  if (!are_same(found, attributes)) found = std::move(attributes);
  return found;
}

}  // namespace graft
