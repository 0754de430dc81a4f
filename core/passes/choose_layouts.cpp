// Convolutions want channels last; views, matrix products and the graph's border want row-major.
// Values that must share a layout (around an Add, say) form a group; each group takes the layout
// that costs fewer copied bytes. Start at LayoutChooser::run.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Makes no Shape.
int rank_of(const Value& value) {
  return value.shape() ? value.shape()->rank() : value.known_shape().rank();  // throws
}

/// Whether the bytes of the value depend on its layout.
bool is_image(const Value* value) {
  constexpr int kFewestAxes = 3;
  return value != nullptr && rank_of(*value) >= kFewestAxes &&
         !is_layout_neutral(value->known_shape());
}

bool lists(const std::vector<int>& slots, int index) {
  return std::ranges::find(slots, index) != slots.end();
}

/// Images that an op takes in either layout, and those that must be row-major.
struct Operands {
  std::vector<Value*> free;
  std::vector<Value*> pinned;
};

class Groups {
 public:
  int of(const Value* value) {
    const auto [at, is_new] = index_.try_emplace(value, static_cast<int>(parents_.size()));
    if (is_new) parents_.push_back(at->second);
    return root(at->second);
  }
  void unite(const Value* a, const Value* b) { parents_[at(of(a))] = of(b); }
  std::size_t size() const { return parents_.size(); }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int root(int i) {
    while (parents_[at(i)] != i) i = parents_[at(i)] = parents_[at(parents_[at(i)])];
    return i;
  }
  std::unordered_map<const Value*, int> index_;
  std::vector<int> parents_;
};

class LayoutChooser {
 public:
  LayoutChooser(Graph& graph, Device& device) : graph_(graph), device_(device) {}

  bool run() {
    for (const auto& node : graph_.nodes()) collect(*node);
    if (!wants_channels_last_) return false;
    pin_border();
    const std::vector<Value*> chosen = choose();
    number_nodes();
    for (Value* value : chosen) lay_out(value);
    return !chosen.empty();
  }

 private:
  void collect(const Node& node) {
    const Operands operands = operands_of(node);
    for (Value* value : operands.pinned) pin(value, node);
    const LayoutRule::Kind kind = rule_of(node).kind;
    for (Value* value : operands.free) {
      groups_.of(value);
      values_.push_back(value);
      if (kind == LayoutRule::Kind::each) {
        saved_bytes_[value] += bytes(value);
        wants_channels_last_ = true;
      } else {
        groups_.unite(value, operands.free.front());
      }
    }
  }

  static const LayoutRule& rule_of(const Node& node) {
    static const LayoutRule row_major;
    const OpDef* const def = OpRegistry::instance().find(node);
    return def == nullptr ? row_major : def->layout;
  }

  Operands operands_of(const Node& node) const {
    const LayoutRule& rule = rule_of(node);
    const bool is_elementwise = rule.kind == LayoutRule::Kind::elementwise;
    Operands operands;
    const auto sort = [&](Value* value, bool is_listed) {
      if (!is_image(value)) return;
      (is_listed ? operands.free : operands.pinned).push_back(value);
    };
    for (int i = 0; i < node.input_count(); ++i) {
      const bool is_taken = is_elementwise
                                ? takes(rule, i) && has_axes_of(node.output(0), node.input(i))
                                : lists(rule.inputs, i);
      sort(node.input(i), is_taken);
    }
    for (int i = 0; i < node.output_count(); ++i) {
      sort(node.output(i), lists(rule.outputs, i) || is_elementwise);
    }
    if (!operands.free.empty() &&
        !(is_elementwise ? is_even(node, rule) : has_channels_last_kernel(node, operands))) {
      operands.pinned.insert(operands.pinned.end(), operands.free.begin(), operands.free.end());
      operands.free.clear();
    }
    return operands;
  }

  /// Whether an elementwise op takes that input in either layout.
  static bool takes(const LayoutRule& rule, int input) {
    return rule.inputs.empty() || lists(rule.inputs, input);
  }

  /// The channels of an operand of fewer axes are others than those of the result.
  static bool has_axes_of(const Value* result, const Value* operand) {
    return operand != nullptr && rank_of(*operand) == rank_of(*result);
  }

  /// What broadcasts in an elementwise op lies the same in both layouts.
  static bool is_even(const Node& node, const LayoutRule& rule) {
    const Shape shape = node.output(0)->known_shape();
    for (int i = 0; i < node.input_count(); ++i) {
      if (node.input(i) == nullptr || !takes(rule, i)) continue;
      const Shape operand = node.input(i)->known_shape();
      if (operand != shape && !is_layout_neutral(with_leading_ones(operand, shape.rank()))) {
        return false;
      }
    }
    return true;
  }

  bool has_channels_last_kernel(const Node& node, const Operands& operands) const {
    for (Value* value : operands.free) value->layout = Layout::channels_last;
    const bool found = static_cast<bool>(find_kernel(node, device_).run);
    for (Value* value : operands.free) value->layout = Layout::row_major;
    return found;
  }

  void pin(Value* value, const Node& node) { pinned_[value].insert(&node); }

  /// What callers see is row-major; so is what bodies read.
  void pin_border() {
    for (Value* value : values_) {
      if (value->producer() == nullptr || value->is_graph_output()) pinned_[value];
      for (const Use& use : value->uses()) {
        if (&use.node->graph() != &graph_) pin(value, *use.node);
      }
    }
  }

  /// The values of the groups for which channels last copies fewer bytes, each once.
  std::vector<Value*> choose() {
    std::vector<Value*> chosen;
    std::unordered_set<const Value*> seen;
    std::ranges::copy_if(values_, std::back_inserter(chosen),
                         [&](const Value* value) { return seen.insert(value).second; });
    std::vector<double> saved(groups_.size());  // bytes that channels last would not copy
    const auto saved_around = [&](const Value* value) -> double& {
      return saved[static_cast<std::size_t>(groups_.of(value))];
    };
    for (const Value* value : chosen) {
      if (saved_bytes_.contains(value)) saved_around(value) += saved_bytes_.at(value);
      if (pinned_.contains(value)) saved_around(value) -= bytes(value);
    }
    std::erase_if(chosen, [&](const Value* value) { return saved_around(value) <= 0.0; });
    return chosen;
  }

  void number_nodes() {
    int number = 0;
    for (const auto& node : graph_.nodes()) order_[node.get()] = number++;
  }

  bool is_pinned_for(const Value* value, const Node* node) const {
    const auto at = pinned_.find(value);
    return at != pinned_.end() && at->second.contains(node);
  }

  void lay_out(Value* value) {
    const bool is_made_row_major =
        value->producer() == nullptr || is_pinned_for(value, value->producer());
    std::vector<Use> others;  // readers that want the layout in which the value is not made
    for (const Use& use : value->uses()) {
      if (is_pinned_for(value, use.node) != is_made_row_major) others.push_back(use);
    }
    if (!is_made_row_major) value->layout = Layout::channels_last;
    const bool is_output = !is_made_row_major && value->is_graph_output();
    if (others.empty() && !is_output) return;
    Value* const copy = add_copy(value, others);
    copy->layout = is_made_row_major ? Layout::channels_last : Layout::row_major;
    for (const Use& use : others) use.node->set_input(use.index, copy);
    if (is_output) {
      std::vector<Value*> outputs = graph_.outputs();
      std::ranges::replace(outputs, value, copy);
      graph_.set_outputs(outputs);
    }
  }

  /// Before its first reader.
  Value* add_copy(Value* value, const std::vector<Use>& readers) {
    Node* before = nullptr;
    for (const Use& use : readers) {
      if (&use.node->graph() != &graph_) continue;
      if (before == nullptr || order_.at(use.node) < order_.at(before)) before = use.node;
    }
    Builder builder(graph_, before);
    Node* const node = builder.node("Relayout", kInternalDomain, {value}, 1, {});
    return node->output(0);
  }

  static double bytes(const Value* value) { return static_cast<double>(value->bytes()); }

  Graph& graph_;
  Device& device_;
  Groups groups_;
  std::vector<Value*> values_;  // free somewhere; with repeats
  std::unordered_map<const Value*, double> saved_bytes_;
  std::unordered_map<const Value*, std::unordered_set<const Node*>> pinned_;
  std::unordered_map<const Node*, int> order_;
  bool wants_channels_last_ = false;
};

}  // namespace

bool choose_layouts(Graph& graph, Device& device) {
  const bool changed = LayoutChooser(graph, device).run();
  return changed;
}

}  // namespace graft::passes
