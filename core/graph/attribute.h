#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/rare_string.h"
#include "core/tensor/tensor.h"

namespace graft {

class Graph;

/// A value that the file format allows and Graft does not interpret (sparse tensors, types).
struct OpaqueValue {};

/// What an attribute holds. A graph is held by a handle: copying an Attribute shares its body,
/// `Graph::clone` copies it.
using AttributeValue =
    std::variant<OpaqueValue, std::int64_t, float, std::string, std::vector<std::int64_t>,
                 std::vector<float>, std::vector<std::string>, Tensor, std::vector<Tensor>,
                 std::shared_ptr<Graph>, std::vector<std::shared_ptr<Graph>>>;

struct Attribute {
  std::string name;
  AttributeValue value;
  /// In a function body: the function's attribute that gives the value; else empty.
  RareString reference{};
  /// What a file held beside name and value. Only io reads and writes it.
  RareString preserved{};

  Attribute(std::string_view attribute_name, AttributeValue attribute_value)
      : name(attribute_name), value(std::move(attribute_value)) {}
  /// Any integer is an int, any floating-point number a float.
  template <std::integral T>
  Attribute(std::string_view attribute_name, T number)
      : Attribute(attribute_name, AttributeValue(static_cast<std::int64_t>(number))) {}
  template <std::floating_point T>
  Attribute(std::string_view attribute_name, T number)
      : Attribute(attribute_name, AttributeValue(static_cast<float>(number))) {}
  Attribute(std::string_view attribute_name, const char* chars)
      : Attribute(attribute_name, AttributeValue(std::string(chars))) {}
};

/// Attributes of a node, in the order of the file. Names are unique. Copies share their list until
/// one of them changes: nodes that are alike, and copies of a graph, have few of them.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<Attribute> list) : Attributes(std::vector<Attribute>(list)) {}
  explicit Attributes(std::vector<Attribute> list);

  /// The attribute of that name; null when there is none.
  const Attribute* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Replaces the attribute of that name or appends.
  void set(Attribute attribute);
  /// Removes the attribute of that name, if there is one.
  void erase(std::string_view name);
  /// Calls change(Attribute&) for each; it must leave the name as it is.
  template <class Change>
  void change_each(const Change& change) {
    if (!empty()) std::ranges::for_each(own_list(), change);
  }

  /// The value, or `fallback` when absent. Throws Error{type} if it holds another type.
  std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  float get_float(std::string_view name, float fallback) const;
  std::string get_string(std::string_view name, std::string fallback) const;
  std::vector<std::int64_t> get_ints(std::string_view name,
                                     std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> get_floats(std::string_view name, std::vector<float> fallback = {}) const;
  /// The tensor; not defined when the attribute is absent.
  Tensor get_tensor(std::string_view name) const;

  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  /// Whether both are one list.
  bool shares_list(const Attributes& other) const { return list_ == other.list_; }

 private:
  template <class T>
  const T* get(std::string_view name, std::string_view wanted) const;

  using List = std::vector<Attribute>;

  static const List& no_list();
  const List& list() const { return list_ == nullptr ? no_list() : *list_; }
  /// To be changed, for these attributes alone.
  List& own_list();

  std::shared_ptr<List> list_;  // null: none
};

/// "int", "floats", "graph", ...: for errors.
std::string_view type_name(const AttributeValue& value);

}  // namespace graft
