#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/op_def.h"

namespace graft {

/// What the nodes of a graph read and write, side by side. Who orders nodes and places their values
/// asks for it again and again; walks over the graph would wait for each node, list and value each
/// time. It says what the graph was when it was made, whatever the order of nodes is now.
class OperandTable {
 public:
  /// A value, by its number in the graph; kNone for an operand that is left out.
  using ValueIndex = std::int32_t;
  static constexpr ValueIndex kNone = -1;

  /// A node. It is named by its place among the nodes as they stood.
  struct Item {
    Node* node;
    const std::vector<Alias>* aliases;  ///< of its op
    std::uint32_t first;                ///< where its operands start
    std::uint32_t inputs;
    std::uint32_t outputs;
    std::uint32_t of_bodies;  ///< what its bodies read of the graph
    bool is_view;
    bool updates_state;
  };
  /// What is known of an output of a node; nothing of other values.
  struct Output {
    std::size_t bytes = 0;
    std::int64_t elements = 0;
    bool is_graph_output = false;
  };

  /// Throws Error{shape} naming the output of a node whose shape is not known.
  explicit OperandTable(const Graph& graph);

  const Graph& graph() const { return *graph_; }
  /// As they stood.
  const std::vector<Item>& items() const { return items_; }
  /// 0, 1, 2, ... for all items.
  std::vector<int> given_order() const;
  /// kNone past the end, too.
  ValueIndex input(const Item& item, int index) const {
    const auto at = static_cast<std::uint32_t>(index);
    return at < item.inputs ? operands_[item.first + at] : kNone;
  }
  std::span<const ValueIndex> inputs(const Item& item) const {
    return {operands_.data() + item.first, item.inputs};
  }
  std::span<const ValueIndex> outputs(const Item& item) const {
    return {operands_.data() + item.first + item.inputs, item.outputs};
  }
  std::span<const ValueIndex> read_by_bodies(const Item& item) const {
    return {operands_.data() + item.first + item.inputs + item.outputs, item.of_bodies};
  }
  std::size_t value_count() const { return outputs_.size(); }
  const Output& output(ValueIndex value) const { return outputs_[static_cast<std::size_t>(value)]; }

 private:
  void add(const Node& node);
  void add_output(const Value& value);

  const Graph* graph_;
  std::vector<Item> items_;
  std::vector<ValueIndex> operands_;
  std::vector<Output> outputs_;  // by value
};

}  // namespace graft
