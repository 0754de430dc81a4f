#include "core/runtime/budget_candidates.h"

#include <unordered_set>

#include "core/base/pointer_map.h"
#include "core/graph/order.h"
#include "core/ops/alias.h"
#include "core/ops/cost.h"
#include "core/passes/recompute.h"

namespace graft {
namespace {

/// Finds the candidates, in order.
class Forward {
 public:
  explicit Forward(const Graph& graph) : graph_(graph) {
    const Node* const boundary = graph.outputs().front()->producer();
    bool is_late = false;
    int number = 0;
    for (const auto& node : graph.nodes()) {
      for_each_read(*node, [&](const Value& value) { note_read(&value, is_late, number); });
      if (!is_late) number_[node.get()] = number++;
      is_late = is_late || node.get() == boundary;
    }
    for (const Value* output : graph.outputs()) pinned_.insert(origin(output));
  }

  std::vector<Candidate> candidates() {
    std::vector<Candidate> found;
    for (const auto& node : graph_.nodes()) {
      if (!number_.contains(node.get())) break;
      if (is_view(*node) || !passes::can_repeat(*node)) continue;
      for (int i = 0; i < node->output_count(); ++i) consider(node->output(i), found);
    }
    return found;
  }

 private:
  void note_read(const Value* value, bool is_late, int number) {
    if (&value->graph() != &graph_) return;  // of a body
    const Value* const root = origin(value);
    if (is_late) {
      read_late_.insert(root);
    } else {
      last_forward_read_[root] = number;
    }
  }

  void consider(const Value* value, std::vector<Candidate>& found) {
    if (value == nullptr || pinned_.contains(value)) return;
    const auto bytes = static_cast<double>(value->bytes());
    constexpr double kWorthAThought = 4096;
    if (bytes < kWorthAThought) return;
    const Node& node = *value->producer();
    double cost = cost_in_bytes(node);
    for (const Value* input : node.inputs()) {
      if (input == nullptr) continue;
      const double* const passed = cost_to_pass_.find(origin(input));
      if (passed != nullptr) cost += *passed;
    }
    const bool is_read_late = read_late_.contains(value);
    if (!is_read_late) cost_to_pass_[value] = cost;
    const int* const read = last_forward_read_.find(value);
    const int made = number_.at(&node);
    found.push_back({value, bytes, cost, is_read_late, made, read == nullptr ? made : *read});
  }

  const Graph& graph_;
  PointerMap<Node, int> number_;
  PointerMap<Value, int> last_forward_read_;
  std::unordered_set<const Value*> read_late_;
  std::unordered_set<const Value*> pinned_;  // graph outputs live to the end anyway
  PointerMap<Value, double> cost_to_pass_;
};

}  // namespace

std::vector<Candidate> budget_candidates(const Graph& graph) {
  return Forward(graph).candidates();
}

}  // namespace graft
