#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/base/pointer_map.h"
#include "core/base/pool.h"
#include "core/graph/name_table.h"
#include "core/graph/node.h"
#include "core/graph/value.h"

namespace graft {

/// Leads from the values of a graph to those of its copy.
using ValueMap = PointerMap<Value, Value*>;

/// Nodes in the order in which they run, and the values they pass. Invariants, which `verify`
/// checks: a node stands after the producers of its inputs; use lists match inputs; names of values
/// are unique; an initializer and a graph input have no producer.
class Graph {
 public:
  explicit Graph(std::string name = "graph", Graph* parent = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::string doc{};
  /// Fields of the file's graph that Graft does not interpret. Only io reads and writes it.
  std::string preserved{};
  /// The graph whose node holds this one as a body; null at the top.
  Graph* parent() const { return parent_; }
  void set_parent(Graph* parent) { parent_ = parent; }

  /// Throws Error{model} if the name is taken. An empty stem or name is replaced by a fresh one.
  Value* add_input(std::string_view name, ValueType type);
  /// Makes a constant; when an input of that name exists, gives it this default value instead.
  Value* add_initializer(std::string_view name, Tensor tensor);
  void add_output(Value* value);
  void set_outputs(const std::vector<Value*>& values);
  /// Removes an input, its default value too, if nothing uses it. Throws Error{argument} otherwise,
  /// naming the users, and for null.
  void remove_input(Value* value);
  /// Takes the default value from an input; removes any other initializer if nothing uses it.
  /// Throws Error{argument} otherwise, naming the users, and for null.
  void remove_initializer(Value* value);

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Value*>& initializers() const { return initializers_; }

  /// Adds a node before `before` (at the end when null), with inputs connected and one output a
  /// name; an empty name leaves that output out. Throws Error{model} if a name is taken.
  Node* add_node(std::string_view op_type, std::string_view domain,
                 const std::vector<Value*>& inputs, const std::vector<std::string>& outputs,
                 Attributes attributes = {}, Node* before = nullptr);
  /// Throws Error{argument} while an output is used, naming the users.
  void remove(Node* node);
  /// Moves `node` before `before` (to the end when null).
  void move(Node* node, Node* before);
  /// Adds an output to `node`; an empty name leaves it out.
  Value* add_node_output(Node* node, std::string_view name);

  const NodeList& nodes() const { return nodes_; }
  std::size_t node_count() const { return nodes_.size(); }
  /// One more than the largest number of a node or value, those that are gone included.
  template <class NodeOrValue>
  std::size_t numbered() const {
    return std::is_same_v<NodeOrValue, Node> ? numbered_nodes_ : numbered_values_;
  }
  /// The node that runs next; null at the end.
  Node* next(const Node* node) const;

  /// The value of that name in this graph (not in its parents); null when there is none.
  Value* find(std::string_view name) const;
  /// The value of that name in this graph or, failing that, in the nearest parent that has one.
  Value* find_in_scope(std::string_view name) const;
  /// Throws Error{model} if the name is taken here, in a parent or in a body that reads the value,
  /// Error{argument} for null and for a value of another graph.
  void rename(Value* value, std::string_view name);
  /// A name that no value of this graph has: the stem itself, or the stem and a number.
  std::string unique_name(std::string_view stem);
  /// Lets every reader of `from`, bodies and graph outputs included, read `to`. Throws
  /// Error{argument} for null.
  void replace_all_uses(Value* from, Value* to);

  /// The same shape, which shares its dims with what was of the same shape lately: most values have
  /// one of few. Bodies, of which there may be many small ones, share nothing.
  SymShape share_dims(SymShape shape);
  /// The same attributes, which share their list with those that were the same lately. Lists with
  /// tensors, bodies or what only io reads stay as they are.
  Attributes share_list(Attributes attributes);

  /// What the file held of a value of this graph; nothing where there was no file. Copies of the
  /// graph hold it too. Only io and edits of what a file declares look at it.
  const PreservedValue& preserved_of(const Value* value) const;
  PreservedValue& preserve(const Value* value) { return preserved_values_[value]; }
  /// What constant folding may still cost (core/base/limits.h); absent until it first ran. Copies
  /// go on with it, so that no number of calls and copies adds up.
  std::optional<double>& folding_left() { return folding_left_; }

  /// A deep copy that shares the elements of tensors. `map`, when given, gets old -> new; values of
  /// an outer graph are looked up in it too and stay as they are when absent.
  std::unique_ptr<Graph> clone(ValueMap* map = nullptr, Graph* parent = nullptr) const;

 private:
  friend class Node;
  friend class Value;
  Value* make_value(std::string_view name);
  Value* place_initializer(std::string_view name, Tensor tensor, const ValueType& type);
  void drop(Value* value);
  /// Of a value that is about to go.
  void forget(const Value& value);
  /// Takes all edges out, those of the bodies too; and all bodies, if it is for good.
  void disconnect(bool for_good);
  /// By a node of this graph.
  void note_read(const Value& value) { reads_outside_ |= value.graph_ != this; }

  /// Of nodes, values and their lists, which so lie in the order in which they were made.
  Pool memory_;
  OpNames op_names_;
  Graph* parent_;
  bool reads_outside_ = false;  // whether a node reads, or read, a value of another graph
  std::uint32_t numbered_nodes_ = 0;
  std::uint32_t numbered_values_ = 0;
  NodeList nodes_;
  std::vector<std::unique_ptr<Value>> owned_;  // inputs and initializers
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<Value*> initializers_;
  NameTable by_name_;
  std::vector<SymShape> recent_shapes_;        // by a hash; none until the first
  std::vector<Attributes> recent_attributes_;  // likewise
  std::unordered_map<std::string, int> next_suffix_;
  std::unordered_map<const Value*, PreservedValue> preserved_values_;
  std::optional<double> folding_left_;
};

/// A copy of an attribute's value whose bodies are copies in `parent`; `map` as in `Graph::clone`.
AttributeValue clone_value(const AttributeValue& value, ValueMap& map, Graph* parent);
/// The same with all attributes of a node.
Attributes clone_attributes(Attributes attributes, ValueMap& map, Graph* parent);

/// Calls visit(Graph&) for each body that the node's attributes hold.
template <class Visit>
void for_each_body(const Node& node, Visit&& visit) {
  for (const Attribute& attribute : node.attributes) {
    if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) visit(**one);
    if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
      for (const auto& body : *many) visit(*body);
    }
  }
}

/// Calls visit(Value&) for all that the node reads: its inputs, then what its bodies' nodes and
/// outputs read, which includes the bodies' own values.
template <class Visit>
void for_each_read(const Node& node, const Visit& visit) {
  for (Value* input : node.inputs()) {
    if (input != nullptr) visit(*input);
  }
  for_each_body(node, [&](Graph& body) {
    for (const auto& inner : body.nodes()) for_each_read(*inner, visit);
    for (Value* output : body.outputs()) visit(*output);
  });
}

}  // namespace graft
