#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

struct OpsetImport {
  std::string domain;  // "" is the standard domain; "ai.onnx" is kept as the file has it
  std::int64_t version = 0;
  friend bool operator==(const OpsetImport&, const OpsetImport&) = default;
};

/// An op that the file defines by a body of other ops.
struct Function {
  std::string domain;
  std::string name;
  std::vector<std::string> attributes{};
  std::vector<Attribute> attribute_defaults{};
  std::vector<OpsetImport> opset_imports{};
  /// Inputs and outputs are the function's formal parameters.
  std::unique_ptr<Graph> body{};
  /// Fields that Graft does not interpret. Only io reads and writes it.
  std::string preserved{};
};

/// A graph and what a file says about it. Movable; `clone` copies.
class Model {
 public:
  Model() : graph_(std::make_unique<Graph>()) {}

  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  void set_graph(std::unique_ptr<Graph> graph) { graph_ = std::move(graph); }
  /// Moves the graph out; the model has an empty one then.
  std::unique_ptr<Graph> take_graph() { return std::exchange(graph_, std::make_unique<Graph>()); }

  std::int64_t ir_version = 10;
  std::vector<OpsetImport> opset_imports{};
  std::string producer_name{};
  std::string producer_version{};
  std::string domain{};
  std::int64_t model_version = 0;
  std::string doc{};
  std::vector<std::pair<std::string, std::string>> metadata{};
  std::vector<Function> functions{};
  /// Bodies that the ONNX standard gives for ops that the model uses, for those ops that Graft has
  /// no row for. A reader attaches them; they are no part of the file.
  std::vector<Function> standard_functions{};
  /// Fields of the file's model that Graft does not interpret. Only io reads and writes it.
  std::string preserved{};

  /// Version imported for a domain ("" and "ai.onnx" are one); 0 when it is not imported.
  std::int64_t opset(std::string_view domain = "") const;
  /// Adds or changes an import.
  void set_opset(std::string_view domain, std::int64_t version);

  /// A deep copy that shares the elements of tensors. `map`, when given, gets old -> new values.
  Model clone(ValueMap* map = nullptr) const;

 private:
  std::unique_ptr<Graph> graph_;
};

}  // namespace graft
