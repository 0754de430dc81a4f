// Nodes are taken in order. Each element-wise one joins the groups of those whose results it reads,
// where that is possible (Chains::is_chain); a group then becomes one node in the place of its
// last.
#include <algorithm>
#include <cassert>

#include "core/base/pointer_map.h"
#include "core/graph/number_table.h"
#include "core/ops/registry.h"
#include "core/passes/chain_internal.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool has_view(const Node& node) {
  return std::ranges::any_of(OpRegistry::instance().get(node).aliases,
                             [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

double bytes(const Value* value) {
  return static_cast<double>(value->bytes());
}

Value* root_of(Value* value) {
  while (value->producer() != nullptr && has_view(*value->producer())) {
    value = value->producer()->input(0);
  }
  return value;
}

class Chains {
 public:
  Chains(Graph& graph, Device& device)
      : graph_(graph), device_(device), position_(graph, -1), group_of_(graph, -1), chains_(graph) {
    for (const auto& node : graph_.nodes()) {
      position_[*node] = static_cast<int>(nodes_.size());
      note_updates(*node);
      nodes_.push_back(node.get());
    }
  }

  bool run() {
    for (Node* node : nodes_) {
      if (is_link(*node, device_)) place(*node);
    }
    bool changed = false;
    for (const Links& links : groups_) {
      if (links.size() < 2) continue;
      write(links);
      changed = true;
    }
    return changed;
  }

 private:
  int position(const Node* node) const {
    assert(position_[*node] >= 0);
    return position_[*node];
  }

  void note_updates(const Node& node) {
    for (const Alias& alias : OpRegistry::instance().get(node).aliases) {
      Value* const state = node.input(alias.input);
      if (alias.kind == AliasKind::state && node.output(alias.output) != nullptr &&
          state != nullptr) {
        updated_at_.try_emplace(root_of(state), position(&node));
      }
    }
  }

  /// Puts the node into a group: with those whose results it reads, if it can be.
  void place(Node& node) {
    const Value* const result = node.output(0);
    std::vector<int> found;
    for (const Value* input : node.inputs()) {
      if (input == nullptr || input->producer() == nullptr) continue;
      const int group = group_of_[*input->producer()];
      if (group < 0 || input->shape() != result->shape() || input->layout != result->layout ||
          std::ranges::find(found, group) != found.end()) {
        continue;
      }
      found.push_back(group);
    }
    if (found.size() > 1 && join(node, found)) return;
    for (const int group : found) {
      if (join(node, {group})) return;
    }
    group_of_[node] = static_cast<int>(groups_.size());
    groups_.push_back({&node});
  }

  bool join(Node& node, const std::vector<int>& groups) {
    Links links;
    for (const int group : groups) {
      const Links& earlier = groups_[static_cast<std::size_t>(group)];
      links.insert(links.end(), earlier.begin(), earlier.end());
    }
    if (groups.size() > 1) {  // one has them in order
      std::ranges::sort(links, {}, [&](const Node* link) { return position(link); });
    }
    links.push_back(&node);
    const auto keeps = [&](int group) {
      return keeps_memory(groups_[static_cast<std::size_t>(group)], links);
    };
    if (!is_chain(links) || !std::ranges::all_of(groups, keeps)) return false;
    for (const int group : groups) groups_[static_cast<std::size_t>(group)].clear();
    for (const Node* link : links) group_of_[*link] = groups.front();
    groups_[static_cast<std::size_t>(groups.front())] = std::move(links);
    return true;
  }

  /// Whether the links can all run where the last one stands, and one chain holds them.
  bool is_chain(const Links& links) const {
    const int end = position(links.back());
    for (const Node* link : links) {
      if (link == links.back()) break;
      for (const Use& use : link->output(0)->uses()) {
        if (&use.node->graph() != &graph_) return false;
        if (position(use.node) <= end && !contains(links, use.node)) return false;
      }
      for (Value* input : link->inputs()) {
        if (input != nullptr && is_updated_between(*link, *links.back(), input)) return false;
      }
    }
    return fits_chain(links, operands_of(links), results_of(links), device_);
  }

  bool is_updated_between(const Node& from, const Node& to, Value* value) const {
    const int* const at = updated_at_.find(root_of(value));
    return at != nullptr && *at > position(&from) && *at < position(&to);
  }

  /// If anything else runs between the earlier links and the last, what they read must not take
  /// more memory meanwhile than what they would hand over.
  bool keeps_memory(const Links& earlier, const Links& links) const {
    const int end = position(links.back());
    const auto runs_between = [&] {
      for (int i = position(earlier.back()) + 1; i < end; ++i) {
        const Node* const node = nodes_[static_cast<std::size_t>(i)];
        if (!has_view(*node) && !contains(links, node)) return true;
      }
      return false;
    };
    if (!runs_between()) return true;
    const auto is_over = [&](const Value* value) {  // before the last link, for the others
      return !value->is_graph_output() && std::ranges::all_of(value->uses(), [&](const Use& use) {
        return contains(links, use.node) ||
               (&use.node->graph() == &graph_ && position(use.node) < end);
      });
    };
    double kept = 0.0;
    for (const Value* operand : operands_of(earlier)) {
      if (operand->producer() != nullptr && is_over(operand)) kept += bytes(operand);
    }
    double saved = 0.0;
    for (const Value* result : results_of(earlier)) {
      if (is_over(result)) saved += bytes(result);
    }
    return kept <= saved;
  }

  void write(const Links& links) {
    const std::vector<Value*> results = results_of(links);
    chains_.add({.op = "ElementwiseChain",
                 .links = links,
                 .inputs = operands_of(links),
                 .results = results,
                 .replaced = results},
                links.back());
    for (auto link = links.rbegin(); link != links.rend(); ++link) graph_.remove(*link);
  }

  Graph& graph_;
  Device& device_;
  std::vector<Node*> nodes_;
  NodeTable<int> position_;
  PointerMap<Value, int> updated_at_;  // a variable: the place of its update
  NodeTable<int> group_of_;            // -1: none yet
  std::vector<Links> groups_;
  ChainMaker chains_;
};

}  // namespace

bool fuse_chains(Graph& graph, Device& device) {
  const bool changed = Chains(graph, device).run();
  return changed;
}

}  // namespace graft::passes
