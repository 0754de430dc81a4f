#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/attribute.h"
#include "core/graph/value.h"

namespace graft {

/// The domain of ops that exist only inside a training step and never reach a file.
inline constexpr std::string_view kInternalDomain = "ai.graft";

/// One call of an op. Belongs to one graph, owns its outputs.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// "Conv".
  const std::string& op_type() const { return op_type_; }
  /// Empty for the standard domain ("ai.onnx" is folded into it).
  const std::string& domain() const { return domain_; }
  bool is(std::string_view op_type, std::string_view domain = "") const {
    return op_type_ == op_type && domain_ == domain;
  }
  /// The file's name for the node; may be empty and need not be unique.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Graph& graph() const { return *graph_; }

  /// Null where an optional input is left out.
  const std::vector<Value*>& inputs() const { return inputs_; }
  /// Null when left out or past the end.
  Value* input(int index) const;
  int input_count() const { return static_cast<int>(inputs_.size()); }
  /// Connects another value; grows the list with left-out inputs as needed. Use lists follow.
  void set_input(int index, Value* value);
  /// Drops left-out inputs at the end.
  void trim_inputs();

  int output_count() const { return static_cast<int>(outputs_.size()); }
  /// Null when left out or past the end.
  Value* output(int index = 0) const;

  Attributes attributes{};
  std::string doc{};
  /// Fields of the file's node that Graft does not interpret. Only io reads and writes it.
  std::string preserved{};

  /// "Conv node 'conv1'", or "Conv node producing 'y'" when it has no name: for errors.
  std::string label() const;

 private:
  friend class Graph;
  Node(Graph* graph, std::string_view op_type, std::string_view domain)
      : graph_(graph), op_type_(op_type), domain_(domain) {}

  Graph* graph_;
  std::string op_type_;
  std::string domain_;
  std::string name_;
  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<Value>> outputs_;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

}  // namespace graft
