#include "core/layers/weighted_layers.h"

#include <algorithm>
#include <optional>

#include "core/graph/find.h"
#include "core/graph/reads.h"
#include "core/ops/registry.h"

namespace graft::edit {
namespace {

std::optional<WeightedLayer> as_layer(Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || (def->multiply_adds == nullptr && !node.is("Gather"))) return {};
  WeightedLayer layer{.node = &node, .slot = -1, .weight = nullptr, .data = nullptr};
  for (const int slot : def->weights) {
    Value* const input = node.input(slot);
    Value* const weight = input == nullptr ? nullptr : constant_behind(input);
    if (weight == nullptr || layer.weight != nullptr) continue;
    const Tensor tensor = constant_tensor(*weight);
    // A table of integers is no weight, unless it is dequantized.
    if (tensor.rank() < 2 || (!is_float(tensor.dtype()) && input == weight)) continue;
    layer.slot = slot;
    layer.weight = weight;
  }
  if (layer.weight == nullptr) return {};
  for (Value* input : node.inputs()) {
    if (input == nullptr || constant_behind(input) != nullptr) continue;
    layer.data = input;
    break;
  }
  return layer;
}

bool reads_shapes(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && def->reads_only_shapes;
}

}  // namespace

Tensor constant_tensor(const Value& value) {
  if (value.is_initializer()) return value.initializer();
  const Node* const producer = value.producer();
  const bool is_constant =
      producer != nullptr && producer->is("Constant") && producer->attributes.has("value");
  return is_constant ? producer->attributes.get_tensor("value") : Tensor();
}

Value* constant_behind(Value* value) {
  while (!constant_tensor(*value).defined()) {
    Node* const producer = value->producer();
    if (producer == nullptr || producer->input(0) == nullptr || producer->is("Concat") ||
        !only_rearranges({producer, 0})) {
      return nullptr;
    }
    value = producer->input(0);
  }
  return value;
}

std::vector<WeightedLayer> weighted_layers(const Graph& graph, const std::vector<Value*>& outputs) {
  const ValueSet needed = needed_values(graph, {}, outputs);
  std::vector<WeightedLayer> layers;
  for (const auto& node : graph.nodes()) {
    bool is_needed = false;
    for (int i = 0; i < node->output_count(); ++i) {
      is_needed = is_needed || needed.contains(node->output(i));
    }
    if (!is_needed) continue;
    if (const auto layer = as_layer(*node)) layers.push_back(*layer);
  }
  return layers;
}

bool is_only_way(const Graph& graph, const Value* value, const std::vector<Value*>& outputs) {
  bool is_reached = false;
  ValueSet seen(outputs.begin(), outputs.end());
  std::vector<const Value*> open(outputs.begin(), outputs.end());
  while (!open.empty()) {
    const Value* const at = open.back();
    open.pop_back();
    is_reached = is_reached || at == value;
    if (at == value) continue;
    if (at->is_graph_input() && !at->is_initializer()) return false;
    if (at->producer() == nullptr || reads_shapes(*at->producer())) continue;
    for_each_read(*at->producer(), [&](const Value& read) {
      if (&read.graph() == &graph && seen.insert(&read).second) open.push_back(&read);
    });
  }
  return is_reached;
}

}  // namespace graft::edit
