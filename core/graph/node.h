#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/pool.h"
#include "core/base/rare_string.h"
#include "core/graph/attribute.h"
#include "core/graph/op_name.h"
#include "core/graph/value.h"

namespace graft {

/// The domain of ops that exist only inside a training step and never reach a file.
inline constexpr std::string_view kInternalDomain = "ai.graft";

class Node;

/// Nodes in the order in which they run, in the memory of their graph.
using NodeList = std::list<std::unique_ptr<Node>, PoolAllocator<std::unique_ptr<Node>>>;

/// One call of an op. Belongs to one graph, owns its outputs.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Gives the memory back to the graph that it came from.
  void operator delete(Node* node, std::destroying_delete_t);

  /// ONNX's name of the op: "Conv".
  const std::string& op_type() const { return op_->type; }
  /// Empty for the standard domain ("ai.onnx" is folded into it).
  const std::string& domain() const { return op_->domain; }
  bool is(std::string_view op_type, std::string_view domain = "") const {
    return op_->type == op_type && op_->domain == domain;
  }
  /// Both. Nodes of a graph that call the same op share it.
  const OpName& op() const { return *op_; }
  /// The file's name for the node; may be empty and need not be unique.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Graph& graph() const { return *graph_; }
  /// No other node of the graph has it or had it (core/graph/number_table.h).
  std::uint32_t number() const { return number_; }

  /// The values that it reads, in order; null where an optional input is left out.
  std::span<Value* const> inputs() const { return inputs_; }
  /// The same as a list of the caller's, to change or to hand on to `Graph::add_node`.
  std::vector<Value*> copy_inputs() const { return {inputs_.begin(), inputs_.end()}; }
  /// Null when left out or past the end.
  Value* input(int index) const {
    return index < input_count() ? inputs_[static_cast<std::size_t>(index)] : nullptr;
  }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  /// Connects another value; grows the list with left-out inputs as needed. Use lists follow.
  void set_input(int index, Value* value);
  /// Drops left-out inputs at the end.
  void trim_inputs();

  int output_count() const { return static_cast<int>(outputs_.size()); }
  /// Null when left out or past the end.
  Value* output(int index = 0) const {
    return index < output_count() ? outputs_[static_cast<std::size_t>(index)].get() : nullptr;
  }

  /// "Conv node 'conv1'", or "Conv node producing 'y'" when it has no name: for errors.
  std::string label() const;

 private:
  friend class Graph;
  friend class Value;
  Node(Graph* graph, const OpName& op);

  // What passes look at lies together.
  Graph* graph_;
  const OpName* op_;
  std::uint32_t number_;
  std::vector<Value*, PoolAllocator<Value*>> inputs_;
  std::vector<std::unique_ptr<Value>, PoolAllocator<std::unique_ptr<Value>>> outputs_;
  /// Where each input's Use stands in its value's list.
  std::vector<std::uint32_t, PoolAllocator<std::uint32_t>> use_places_;
  NodeList::iterator position_;
  std::string name_;

 public:
  Attributes attributes{};
  RareString doc{};
  /// Fields of the file's node that Graft does not interpret. Only io reads and writes it.
  RareString preserved{};
};

}  // namespace graft
