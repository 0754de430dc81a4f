#include "core/runtime/update_runs.h"

#include <unordered_set>

#include "core/graph/order.h"
#include "core/ops/alias.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// What the members of a run read and write, views apart.
class Run {
 public:
  /// False if the node must wait for one of them, or one of them for it.
  bool takes(const Node& node) const {
    for (const Value* input : node.inputs()) {
      if (input != nullptr && written_.contains(origin(input))) return false;
    }
    for (int i = 0; i < node.output_count(); ++i) {
      const Value* const variable = variable_of(node, i);
      if (variable != nullptr && read_.contains(variable)) return false;
    }
    return true;
  }

  void add(const Node& node) {
    for (const Value* input : node.inputs()) {
      if (input != nullptr) read_.insert(origin(input));
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (const Value* const variable = variable_of(node, i)) written_.insert(variable);
      if (node.output(i) != nullptr) written_.insert(node.output(i));
    }
  }

 private:
  static const Value* variable_of(const Node& node, int output) {
    const Alias* const alias = find_alias(node, output, AliasKind::state);
    if (alias == nullptr || node.output(output) == nullptr) return nullptr;
    const Value* const variable = node.input(alias->input);
    return variable == nullptr ? nullptr : origin(variable);
  }

  std::unordered_set<const Value*> read_;
  std::unordered_set<const Value*> written_;
};

/// Whether the node does nothing but give variables new content.
bool only_updates(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && find_alias(node, i, AliasKind::state) == nullptr) return false;
  }
  return node.output_count() > 0;
}

bool may_join(const PlannedStep& step) {
  return !step.has_workspace && only_updates(*step.node);
}

/// Of a matrix: a vector's is summed on the way.
bool makes_its_gradient(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && def->multiply_adds != nullptr && node.input(0)->known_shape().rank() > 1;
}

/// An update and its product form go by one name.
std::string_view rule_of(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  return def == nullptr || def->product_form.op.empty() ? node.op_type() : def->product_form.op;
}

}  // namespace

std::vector<std::size_t> update_runs(std::span<const PlannedStep> steps) {
  std::vector<std::size_t> ends(steps.size());
  for (std::size_t first = 0, end = 0; first < steps.size(); first = end) {
    end = first + 1;
    const auto may_follow = [&] {
      return end < steps.size() && may_join(steps[end]) &&
             rule_of(*steps[end].node) == rule_of(*steps[first].node);
    };
    if (may_join(steps[first]) && may_follow()) {  // most stand alone
      Run run;
      run.add(*steps[first].node);
      while (may_follow() && run.takes(*steps[end].node)) run.add(*steps[end++].node);
    }
    for (std::size_t i = first; i < end; ++i) ends[i] = i == first ? end : i + 1;
  }
  return ends;
}

void gather_updates(Graph& graph) {
  std::vector<Node*> others;
  std::vector<Node*> behind;
  std::unordered_set<const Node*> late;
  for (Node* const node : node_order(graph)) {
    bool is_late = only_updates(*node) && !makes_its_gradient(*node);
    for (const Value* input : node->inputs()) {
      const Node* const producer = input == nullptr ? nullptr : input->producer();
      is_late = is_late || (producer != nullptr && late.contains(producer));
    }
    if (is_late) late.insert(node);
    (is_late ? behind : others).push_back(node);
  }
  others.insert(others.end(), behind.begin(), behind.end());
  reorder(graph, others);
}

}  // namespace graft
