#include "core/ops/operand_table.h"

#include <numeric>

#include "core/ops/alias.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

OperandTable::ValueIndex index_of(const Value& value) {
  return static_cast<OperandTable::ValueIndex>(value.number());
}

}  // namespace

OperandTable::OperandTable(const Graph& graph) : graph_(&graph), outputs_(graph.numbered<Value>()) {
  constexpr std::size_t kMostHave = 4;  // operands
  items_.reserve(graph.node_count());
  operands_.reserve(kMostHave * graph.node_count());
  for (const auto& node : graph.nodes()) {
    const OpDef& def = OpRegistry::instance().get(*node);
    items_.push_back({.node = node.get(),
                      .aliases = &def.aliases,
                      .first = static_cast<std::uint32_t>(operands_.size()),
                      .inputs = static_cast<std::uint32_t>(node->input_count()),
                      .outputs = static_cast<std::uint32_t>(node->output_count()),
                      .of_bodies = 0,
                      .is_view = find_alias(def.aliases, 0, AliasKind::view) != nullptr,
                      .updates_state = def.updates_state()});
    add(*node);
  }
}

std::vector<int> OperandTable::given_order() const {
  std::vector<int> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void OperandTable::add(const Node& node) {
  for (const Value* input : node.inputs()) {
    operands_.push_back(input == nullptr ? kNone : index_of(*input));
  }
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    operands_.push_back(output == nullptr ? kNone : index_of(*output));
    if (output != nullptr) add_output(*output);
  }
  const std::size_t own = operands_.size();
  const auto add_read = [&](const Value& value) {
    if (&value.graph() == graph_) operands_.push_back(index_of(value));
  };
  for_each_body(node, [&](const Graph& body) {
    for (const auto& inner : body.nodes()) for_each_read(*inner, add_read);
    for (const Value* output : body.outputs()) add_read(*output);
  });
  items_.back().of_bodies = static_cast<std::uint32_t>(operands_.size() - own);
}

void OperandTable::add_output(const Value& value) {
  Output& output = outputs_[value.number()];
  output = {value.bytes(), 1, value.is_graph_output()};
  for (const Dim& dim : *value.shape()) output.elements *= dim.value();
}

}  // namespace graft
