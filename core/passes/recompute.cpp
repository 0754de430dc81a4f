#include "core/passes/recompute.h"

#include <algorithm>

#include "core/base/pointer_map.h"
#include "core/ops/alias.h"
#include "core/ops/registry.h"

namespace graft::passes {
namespace {

bool is_optional(const std::vector<Param>& params, int index) {
  return index < static_cast<int>(params.size()) &&
         params[static_cast<std::size_t>(index)].arity == Arity::optional;
}

using Values = std::unordered_set<const Value*>;

class Repeater {
 public:
  Repeater(Graph& graph, const Values& dropped, const Values& apart)
      : graph_(graph), dropped_(dropped), apart_(apart) {}

  std::vector<Repeat> run(const Node* boundary) {
    int rank = 0;
    std::vector<Node*> late;
    for (const auto& node : graph_.nodes()) {
      if (rank_.contains(boundary)) {
        late.push_back(node.get());
      } else {
        rank_[node.get()] = rank++;
      }
    }
    for (Node* node : late) {
      for (int i = 0; i < node->input_count(); ++i) {
        if (node->input(i) != nullptr) node->set_input(i, again(node->input(i), node));
      }
      note_updates(*node);
    }
    return std::move(repeats_);
  }

 private:
  /// What is dropped, or shows what is.
  bool is_dropped(const Value* value) const {
    while (value->producer() != nullptr && rank_.contains(value->producer())) {
      if (!is_view(*value->producer())) return dropped_.contains(value);
      value = value->producer()->input(0);
    }
    return false;
  }

  /// The value, or its copy, made before `reader`.
  Value* again(Value* value, Node* reader) {
    if (!is_dropped(value)) return value;
    const std::vector<Node*> missing = missing_for(value, reader);
    // Once a variable is updated, what was made of it cannot be made anew.
    if (std::ranges::any_of(missing, [&](const Node* node) { return reads_updated(*node); })) {
      const Copy* const earlier = copies_.find(value);
      return earlier == nullptr ? value : earlier->value;
    }
    for (Node* node : missing) copy(*node, reader);
    return copies_.at(value).value;
  }

  void note_updates(const Node& node) {
    for (int i = 0; i < node.output_count(); ++i) {
      const Alias* const state = find_alias(node, i, AliasKind::state);
      if (state != nullptr) updated_.insert(origin(node.input(state->input)));
    }
  }

  bool reads_updated(const Node& node) const {
    return std::ranges::any_of(node.inputs(), [&](const Value* input) {
      return input != nullptr && updated_.contains(origin(input));
    });
  }

  /// Whether `reader` may read a copy that there is.
  bool has_copy(const Value* value, const Node* reader) const {
    const Copy* const copy = copies_.find(value);
    return copy != nullptr && (copy->reader == reader || !apart_.contains(origin(value)));
  }

  /// The nodes to repeat for the value, in order.
  std::vector<Node*> missing_for(Value* value, const Node* reader) const {
    std::vector<Node*> missing;
    std::unordered_set<const Node*> seen;
    std::vector<const Value*> open{value};
    while (!open.empty()) {
      const Value* const next = open.back();
      open.pop_back();
      if (!is_dropped(next) || has_copy(next, reader)) continue;
      Node* const producer = next->producer();
      if (!seen.insert(producer).second) continue;
      missing.push_back(producer);
      for (const Value* input : producer->inputs()) {
        if (input != nullptr) open.push_back(input);
      }
    }
    std::ranges::sort(missing, {}, [&](const Node* node) { return rank_.at(node); });
    return missing;
  }

  void copy(Node& node, Node* before) {
    std::vector<Value*> inputs;
    for (Value* input : node.inputs()) {
      inputs.push_back(input != nullptr && is_dropped(input) ? copies_.at(input).value : input);
    }
    std::vector<std::string> outputs;
    for (int i = 0; i < node.output_count(); ++i) {
      const Alias* const state = find_alias(node, i, AliasKind::state);
      if (state != nullptr) inputs[static_cast<std::size_t>(state->input)] = nullptr;
      const bool is_left_out = node.output(i) == nullptr || state != nullptr;
      outputs.push_back(is_left_out ? "" : graph_.unique_name(node.output(i)->name() + "/again"));
    }
    ValueMap inside;  // a body belongs to one node
    Node* const twin = graph_.add_node(node.op_type(), node.domain(), inputs, outputs,
                                       clone_attributes(node.attributes, inside, &graph_), before);
    twin->set_name(node.name());
    for (int i = 0; i < node.output_count(); ++i) {
      if (twin->output(i) == nullptr) continue;
      twin->output(i)->set_type(node.output(i)->type());
      twin->output(i)->layout = node.output(i)->layout;
      copies_[node.output(i)] = {twin->output(i), before};
    }
    repeats_.push_back({twin, &node});
  }

  /// The last one made of a value.
  struct Copy {
    Value* value;
    const Node* reader;  ///< before which it was made
  };

  Graph& graph_;
  const Values& dropped_;
  const Values& apart_;
  PointerMap<Node, int> rank_;  // of nodes up to the boundary
  PointerMap<Value, Copy> copies_;
  Values updated_;  ///< variables, by the nodes so far
  std::vector<Repeat> repeats_;
};

}  // namespace

bool can_repeat(const Node& node) {
  const OpDef& def = OpRegistry::instance().get(node);
  if (def.is_dynamic || def.draws == Draws::by_node) return false;
  bool repeats = true;
  for_each_body(node, [&](const Graph& body) {
    for (const auto& inner : body.nodes()) repeats = repeats && can_repeat(*inner);
  });
  if (!repeats) return false;
  return std::ranges::all_of(def.aliases, [&](const Alias& alias) {
    return alias.kind != AliasKind::state ||
           (is_optional(def.inputs, alias.input) && is_optional(def.outputs, alias.output));
  });
}

std::vector<Repeat> recompute(Graph& graph, const Node* boundary,
                              const std::unordered_set<const Value*>& dropped,
                              const std::unordered_set<const Value*>& apart) {
  std::vector<Repeat> repeats = Repeater(graph, dropped, apart).run(boundary);
  return repeats;
}

void remove_repeats(Graph& graph, std::span<const Repeat> repeats) {
  for (const Repeat& repeat : repeats) {
    for (int i = 0; i < repeat.node->output_count(); ++i) {
      if (repeat.node->output(i) == nullptr) continue;
      graph.replace_all_uses(repeat.node->output(i), repeat.original->output(i));
    }
  }
  for (auto at = repeats.rbegin(); at != repeats.rend(); ++at) graph.remove(at->node);
}

}  // namespace graft::passes
