// Assignments that stand one behind the other are taken together. From what they assign, the pass
// goes back over element-wise nodes whose results are read within the formula alone. All these run
// where the last assignment stands.
#include <algorithm>
#include <cassert>

#include "core/graph/number_table.h"
#include "core/ops/alias.h"
#include "core/passes/chain_internal.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

constexpr int kVariable = 0;
constexpr int kContent = 1;

bool is_assign(const Node& node) {
  return node.is("Assign", kInternalDomain);
}

class Updates {
 public:
  Updates(Graph& graph, Device& device) : graph_(graph), device_(device), chains_(graph) {}

  bool run() {
    std::vector<Links> groups;
    const Node* last = nullptr;
    for (const auto& node : graph_.nodes()) {
      if (!is_assign(*node)) continue;
      if (last == nullptr || graph_.next(last) != node.get()) groups.emplace_back();
      groups.back().push_back(node.get());
      last = node.get();
    }
    if (groups.empty()) return false;  // most graphs have none
    number_nodes();
    bool changed = false;
    for (const Links& group : groups) changed |= fuse(group);
    return changed;
  }

 private:
  void number_nodes() {
    position_ = NodeTable<int>(graph_, -1);
    int position = 0;
    for (const auto& node : graph_.nodes()) position_[*node] = position++;
  }

  int position(const Node* node) const {
    assert(position_[*node] >= 0);
    return position_[*node];
  }

  /// Those whose content is element-wise, of the shape of the last.
  Links fitting(const Links& group) const {
    Links assigns;
    for (Node* assign : group) {
      const Value* const content = assign->input(kContent);
      const Node* const producer = content->producer();
      if (producer != nullptr && content->layout == Layout::row_major &&
          content->known_shape() == group.back()->input(kContent)->known_shape() &&
          is_link(*producer, device_)) {
        assigns.push_back(assign);
      }
    }
    return assigns;
  }

  /// Whether the node's result is of the formula's shape, and read by these nodes alone.
  bool is_inner(const Node& node, const Links& links, const Links& assigns) const {
    const Value* const result = node.output(0);
    const auto is_within = [&](const Use& use) {
      return contains(links, use.node) || (contains(assigns, use.node) && use.index == kContent);
    };
    return is_link(node, device_) && !result->is_graph_output() &&
           result->layout == Layout::row_major &&
           result->known_shape() == assigns.back()->input(kContent)->known_shape() &&
           std::ranges::all_of(result->uses(), is_within);
  }

  Links links_of(const Links& assigns) const {
    Links links;
    std::vector<Node*> waiting;
    for (const Node* assign : assigns) waiting.push_back(assign->input(kContent)->producer());
    while (!waiting.empty()) {
      Node* const node = waiting.back();
      waiting.pop_back();
      if (contains(links, node) || !is_inner(*node, links, assigns)) continue;
      links.push_back(node);
      for (const Value* input : node->inputs()) {
        if (input != nullptr && input->producer() != nullptr) waiting.push_back(input->producer());
      }
    }
    std::ranges::sort(links, {}, [&](const Node* link) { return position(link); });
    return links;
  }

  /// Whether anything but these nodes reads the value, or a view of it, behind a place.
  bool is_read_behind(const Value* value, int place, const Links& but) const {
    return std::ranges::any_of(value->uses(), [&](const Use& use) {
      if (contains(but, use.node)) return false;
      if (&use.node->graph() != &graph_ || position(use.node) > place) return true;
      return is_view(*use.node) && is_read_behind(use.node->output(), place, but);
    });
  }

  bool is_read_until(const Value& value, int place) const {
    return std::ranges::any_of(value.uses(), [&](const Use& use) {
      return &use.node->graph() != &graph_ || position(use.node) <= place;
    });
  }

  /// Whether another node changes the value, a variable or a view of one, from a place on.
  bool is_updated_from(const Value* value, int place, const Links& but) const {
    return std::ranges::any_of(origin(value)->uses(), [&](const Use& use) {
      return !contains(but, use.node) && &use.node->graph() == &graph_ &&
             position(use.node) > place && updates_state(*use.node);
    });
  }

  bool fuse(const Links& group) {
    const Links assigns = fitting(group);
    if (assigns.empty()) return false;
    NewChain chain{.op = "UpdateChain", .links = links_of(assigns)};
    const int place = position(assigns.back());
    for (const Node* assign : assigns) {
      Value* const variable = assign->input(kVariable);
      Value* const content = assign->input(kContent);
      const bool is_new = std::ranges::find(chain.inputs, variable) == chain.inputs.end() &&
                          std::ranges::find(chain.results, content) == chain.results.end();
      if (!is_new || !contains(chain.links, content->producer()) ||
          is_read_behind(variable, place, assigns) || is_read_until(*assign->output(), place)) {
        return false;
      }
      chain.inputs.push_back(variable);
      chain.results.push_back(content);
      chain.replaced.push_back(assign->output());
    }
    const int start = position(chain.links.front());
    for (Value* operand : operands_of(chain.links)) {
      if (std::ranges::find(chain.inputs, operand) != chain.inputs.end()) continue;
      if (is_updated_from(operand, start, assigns)) return false;
      chain.inputs.push_back(operand);
    }
    if (!fits_chain(chain.links, chain.inputs, chain.results, device_)) return false;
    position_[*chains_.add(chain, assigns.back())] = place;
    for (Node* assign : assigns) graph_.remove(assign);
    for (auto link = chain.links.rbegin(); link != chain.links.rend(); ++link) graph_.remove(*link);
    return true;
  }

  Graph& graph_;
  Device& device_;
  NodeTable<int> position_;
  ChainMaker chains_;
};

}  // namespace

bool fuse_updates(Graph& graph, Device& device) {
  return Updates(graph, device).run();
}

}  // namespace graft::passes
