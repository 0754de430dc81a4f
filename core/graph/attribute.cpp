#include "core/graph/attribute.h"

#include <algorithm>
#include <array>
#include <utility>

namespace graft {

std::string_view type_name(const AttributeValue& value) {
  static constexpr std::array<std::string_view, std::variant_size_v<AttributeValue>> kNames{
      "opaque",  "int",    "float",   "string", "ints",  "floats",
      "strings", "tensor", "tensors", "graph",  "graphs"};
  return kNames.at(value.index());
}

Attributes::Attributes(std::vector<Attribute> list)
    : list_(list.empty() ? nullptr : std::make_shared<List>(std::move(list))) {}

const Attributes::List& Attributes::no_list() {
  static const List kNone;
  return kNone;
}

Attributes::List& Attributes::own_list() {
  if (list_ == nullptr) {
    list_ = std::make_shared<List>();
  } else if (list_.use_count() > 1) {
    list_ = std::make_shared<List>(*list_);
  }
  return *list_;
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto at = std::ranges::find(list(), name, &Attribute::name);
  return at == list().end() ? nullptr : &*at;
}

void Attributes::set(Attribute attribute) {
  List& own = own_list();
  const auto at = std::ranges::find(own, attribute.name, &Attribute::name);
  if (at == own.end()) {
    own.push_back(std::move(attribute));
  } else {
    *at = std::move(attribute);
  }
}

void Attributes::erase(std::string_view name) {
  if (!has(name)) return;
  std::erase_if(own_list(), [&](const Attribute& a) { return a.name == name; });
}

template <class T>
const T* Attributes::get(std::string_view name, std::string_view wanted) const {
  const Attribute* const attribute = find(name);
  if (attribute == nullptr) return nullptr;
  const T* const value = std::get_if<T>(&attribute->value);
  if (value == nullptr) {
    fail(ErrorKind::type, "attribute '", name, "' is of type ", type_name(attribute->value),
         ", wanted ", wanted);
  }
  return value;
}

std::int64_t Attributes::get_int(std::string_view name, std::int64_t fallback) const {
  const auto* const value = get<std::int64_t>(name, "int");
  return value != nullptr ? *value : fallback;
}

float Attributes::get_float(std::string_view name, float fallback) const {
  const auto* const value = get<float>(name, "float");
  return value != nullptr ? *value : fallback;
}

std::string Attributes::get_string(std::string_view name, std::string fallback) const {
  const auto* const value = get<std::string>(name, "string");
  return value != nullptr ? *value : fallback;
}

std::vector<std::int64_t> Attributes::get_ints(std::string_view name,
                                               std::vector<std::int64_t> fallback) const {
  const auto* const value = get<std::vector<std::int64_t>>(name, "ints");
  return value != nullptr ? *value : fallback;
}

std::vector<float> Attributes::get_floats(std::string_view name,
                                          std::vector<float> fallback) const {
  const auto* const value = get<std::vector<float>>(name, "floats");
  return value != nullptr ? *value : fallback;
}

Tensor Attributes::get_tensor(std::string_view name) const {
  const auto* const value = get<Tensor>(name, "tensor");
  return value != nullptr ? *value : Tensor();
}

}  // namespace graft
