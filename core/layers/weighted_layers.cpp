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
    Value* const weight = input == nullptr ? nullptr : initializer_behind(input);
    if (weight == nullptr || weight->initializer().rank() < 2 || layer.weight != nullptr) continue;
    // What a table of integers is looked up for is no weight, unless it is dequantized.
    if (!is_float(weight->dtype()) && input == weight) continue;
    layer.slot = slot;
    layer.weight = weight;
  }
  if (layer.weight == nullptr) return {};
  for (Value* input : node.inputs()) {
    if (input == nullptr || initializer_behind(input) != nullptr) continue;
    layer.data = input;
    break;
  }
  return layer;
}

}  // namespace

Value* initializer_behind(Value* value) {
  while (!value->is_initializer()) {
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
  const ValueSet needed = needed_values(graph, {value}, outputs);
  return needed.contains(value) && std::ranges::none_of(needed, [&](const Value* each) {
           return each != value && each->is_graph_input() && !each->is_initializer();
         });
}

}  // namespace graft::edit
