#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/expr.h"

namespace graft {

/// Adds nodes to a graph and infers their types at once. Writes the newest form of each op, unless
/// the graph belongs to a model of an older opset (edit::append), where the caller chooses the
/// form.
class Builder {
 public:
  /// Adds before `before`, at the end when null. `prefix` starts the names of all new values.
  explicit Builder(Graph& graph, Node* before = nullptr, std::string prefix = "")
      : graph_(graph), before_(before), prefix_(std::move(prefix)) {}

  Graph& graph() const { return graph_; }
  void insert_before(Node* before) { before_ = before; }
  /// Names of new values become "prefix" + op type in lower case, made unique.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  /// A node with `outputs` outputs. Throws what inference throws.
  Node* node(std::string_view op, std::string_view domain, const std::vector<Value*>& inputs,
             int outputs, Attributes attributes = {});
  /// The same with chosen output names (an empty one leaves that output out).
  Node* node(std::string_view op, std::string_view domain, const std::vector<Value*>& inputs,
             const std::vector<std::string>& outputs, Attributes attributes = {});
  /// An initializer.
  Value* constant(Tensor tensor, std::string_view stem = "constant");

  Expr expr(Value* value) { return {*this, value}; }

 private:
  Graph& graph_;
  Node* before_;
  std::string prefix_;
};

}  // namespace graft
