#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/layout.h"
#include "core/base/pool.h"
#include "core/base/sym_shape.h"
#include "core/tensor/tensor.h"

namespace graft {

class Graph;
class Node;

/// What is known of a value. Unknown until a file or inference says it.
struct ValueType {
  DType dtype = DType::undefined;
  /// Absent when not even the rank is known.
  std::optional<SymShape> shape{};
  /// True for sequences, maps, optionals and sparse tensors: carried, not computed.
  bool is_container = false;

  friend bool operator==(const ValueType&, const ValueType&) = default;
};

/// "f32[N,3]", "f32", "?".
void append_text(std::string& to, const ValueType& type);

/// What a value was in the program that a file was exported from, as far as the file and the habits
/// of its exporter tell. It decides what trains by default.
enum class Role : std::uint8_t {
  unknown,    ///< nothing tells: a parameter, a buffer, or no part of that program
  parameter,  ///< trained there
  buffer,     ///< kept beside the parameters and not trained: a mask, a table, a frozen norm
  statistic,  ///< the running mean or variance of a normalization
  constant,   ///< a number that the program spells out
  folded,     ///< made by the exporter: of parameters, or of what the program spells out
};

/// What a file held of a value beside its name, type and tensor. Graph::preserve() keeps it.
struct PreservedValue {
  std::string info{};
  std::string tensor{};
  /// The file lists the value in value_info.
  bool in_value_info = false;
};

/// A node that reads a value, and as which input.
struct Use {
  Node* node;
  int index;
  friend bool operator==(const Use&, const Use&) = default;
};

/// An edge of the graph: one producer (none for graph inputs and initializers), many uses.
/// Owned by its producer or, without one, by its graph. Changed only through Graph and Node.
class Value {
 public:
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  /// Gives the memory back to the graph that it came from.
  void operator delete(Value* value, std::destroying_delete_t);

  /// Unique within the graph; `Graph::rename` changes it.
  const std::string& name() const { return name_; }
  Graph& graph() const { return *graph_; }
  /// Null for graph inputs and initializers.
  Node* producer() const { return producer_; }
  /// No other value of the graph has it or had it (core/graph/number_table.h).
  std::uint32_t number() const { return number_; }
  /// Which of the producer's outputs this is; 0 without a producer.
  int output_index() const { return output_index_; }
  /// Readers, bodies of If, Loop and Scan included, in the order in which they were connected; the
  /// last takes the place of one that is disconnected.
  std::span<const Use> uses() const { return uses_; }
  bool is_graph_input() const { return is_input_; }
  bool is_graph_output() const { return output_count_ > 0; }
  /// Whether no node reads it and no graph gives it out.
  bool is_unused() const { return uses_.empty() && output_count_ == 0; }

  const ValueType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const std::optional<SymShape>& shape() const { return type_.shape; }
  void set_type(ValueType type) { type_ = std::move(type); }
  /// The concrete shape. Throws Error{shape} naming the value if it is not fully known.
  Shape known_shape() const;
  /// The bytes that all elements take. Throws as `known_shape` does.
  std::size_t bytes() const;

  bool is_initializer() const { return initializer_.defined(); }
  /// Not defined unless this is an initializer.
  const Tensor& initializer() const { return initializer_; }
  /// Replaces the initializer's tensor handle. Sessions and training steps that exist keep the one
  /// before: to change what they read, write into its tensor (Tensor::copy_from). Throws
  /// Error{argument} if this is not an initializer, or if type or shape differ.
  void set_initializer(Tensor tensor);

  /// Given by io where a file is read; what takes a value's place takes over its role.
  Role role = Role::unknown;
  /// An initializer whose elements change between runs (a parameter, a running statistic, optimizer
  /// state): inference and folding must not look at them.
  bool is_variable = false;

  /// How a plan lays the elements out. Only passes::choose_layouts sets it; inputs, outputs and
  /// initializers of a graph are row-major always.
  Layout layout = Layout::row_major;

 private:
  friend class Graph;
  friend class Node;
  Value(Graph* graph, std::string name);
  void add_use(const Use& use);
  void drop_use(std::uint32_t place);

  // What passes look at lies together.
  Graph* graph_;
  Node* producer_ = nullptr;
  std::uint32_t number_;
  int output_index_ = 0;
  std::vector<Use, PoolAllocator<Use>> uses_;
  ValueType type_;
  int output_count_ = 0;
  bool is_input_ = false;
  Tensor initializer_;
  std::string name_;
};

}  // namespace graft
