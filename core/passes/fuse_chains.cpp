// Nodes are taken in order. Each element-wise one joins the groups of those whose results it reads,
// where that is possible (Chains::is_chain); a group then becomes one node in the place of its
// last.
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/ops/math/elementwise_chain.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

using Links = std::vector<Node*>;  // in the order in which they run

bool contains(const Links& links, const Node* node) {
  return std::ranges::find(links, node) != links.end();
}

/// A constant of one element: part of the body.
bool is_scalar_constant(const Value* value) {
  const Tensor tensor = constant_of(value);
  return tensor.defined() && tensor.size() == 1;
}

bool is_view(const Node& node) {
  return std::ranges::any_of(OpRegistry::instance().get(node).aliases,
                             [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

double bytes(const Value* value) {
  return static_cast<double>(value->bytes());
}

/// What the links read from outside, each value once; constants of one element are left out.
std::vector<Value*> operands_of(const Links& links) {
  std::vector<Value*> operands;
  for (const Node* link : links) {
    for (Value* input : link->inputs()) {
      if (input == nullptr || is_scalar_constant(input) || contains(links, input->producer()) ||
          std::ranges::find(operands, input) != operands.end()) {
        continue;
      }
      operands.push_back(input);
    }
  }
  return operands;
}

/// How many elements in a row of the result take as many of the operand, or just one.
std::int64_t run_length(const Value& operand, const Value& result) {
  Shape whole = result.known_shape();
  Shape part = with_leading_ones(operand.known_shape(), whole.rank());
  if (result.layout == Layout::channels_last) {
    whole = channels_last_shape(whole);
    part = channels_last_shape(part);
  }
  std::int64_t length = 1;
  std::optional<bool> is_still;
  for (int axis = whole.rank() - 1; axis >= 0; --axis) {
    if (whole[axis] == 1) continue;
    if (is_still && *is_still != (part[axis] == 1)) break;
    is_still = part[axis] == 1;
    length *= whole[axis];
  }
  return length;
}

/// A chain begins anew with each run: with short ones, single ops are faster.
bool has_long_runs(const Value& operand, const Value& result) {
  constexpr std::int64_t kShort = 256;
  constexpr std::int64_t kFew = 4096;
  return result.known_shape().size() <= kFew || run_length(operand, result) >= kShort;
}

/// What others read of the links.
std::vector<Value*> results_of(const Links& links) {
  std::vector<Value*> results;
  for (const Node* link : links) {
    Value* const result = link->output(0);
    const bool is_read = std::ranges::any_of(
        result->uses(), [&](const Use& use) { return !contains(links, use.node); });
    if (is_read || result->is_graph_output()) results.push_back(result);
  }
  return results;
}

Value* root_of(Value* value) {
  while (value->producer() != nullptr && is_view(*value->producer())) {
    value = value->producer()->input(0);
  }
  return value;
}

class Chains {
 public:
  Chains(Graph& graph, Device& device) : graph_(graph), device_(device) {
    for (const auto& node : graph_.nodes()) {
      position_[node.get()] = static_cast<int>(nodes_.size());
      note_updates(*node);
      nodes_.push_back(node.get());
    }
  }

  bool run() {
    for (Node* node : nodes_) {
      if (is_link(*node)) place(*node);
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
  int position(const Node* node) const { return position_.at(node); }

  void note_updates(const Node& node) {
    for (const Alias& alias : OpRegistry::instance().get(node).aliases) {
      Value* const state = node.input(alias.input);
      if (alias.kind == AliasKind::state && state != nullptr) {
        updated_at_.try_emplace(root_of(state), position(&node));
      }
    }
  }

  bool is_link(const Node& node) const {
    const Value* const result = node.output(0);
    return node.output_count() == 1 && result != nullptr && node.input_count() > 0 &&
           node.input_count() <= kMostLinkInputs && find_run_function(node, device_);
  }

  /// Puts the node into a group: with those whose results it reads, if it can be.
  void place(Node& node) {
    const Value* const result = node.output(0);
    std::vector<int> found;
    for (const Value* input : node.inputs()) {
      const auto at = input == nullptr ? group_of_.end() : group_of_.find(input->producer());
      if (at == group_of_.end() || input->known_shape() != result->known_shape() ||
          input->layout != result->layout || std::ranges::find(found, at->second) != found.end()) {
        continue;
      }
      found.push_back(at->second);
    }
    if (found.size() > 1 && join(node, found)) return;
    for (const int group : found) {
      if (join(node, {group})) return;
    }
    group_of_[&node] = static_cast<int>(groups_.size());
    groups_.push_back({&node});
  }

  bool join(Node& node, const std::vector<int>& groups) {
    Links links;
    for (const int group : groups) {
      const Links& earlier = groups_[static_cast<std::size_t>(group)];
      links.insert(links.end(), earlier.begin(), earlier.end());
    }
    std::ranges::sort(links, {}, [&](const Node* link) { return position(link); });
    links.push_back(&node);
    const auto keeps = [&](int group) {
      return keeps_memory(groups_[static_cast<std::size_t>(group)], links);
    };
    if (!is_chain(links) || !std::ranges::all_of(groups, keeps)) return false;
    for (const int group : groups) groups_[static_cast<std::size_t>(group)].clear();
    for (const Node* link : links) group_of_[link] = groups.front();
    groups_[static_cast<std::size_t>(groups.front())] = std::move(links);
    return true;
  }

  /// Whether the links can all run where the last one stands, and one chain holds them.
  bool is_chain(const Links& links) const {
    const int end = position(links.back());
    std::size_t values = links.size();
    for (const Node* link : links) {
      values += link->inputs().size();
      if (link == links.back()) break;
      for (const Use& use : link->output(0)->uses()) {
        if (&use.node->graph() != &graph_) return false;
        if (position(use.node) <= end && !contains(links, use.node)) return false;
      }
      for (Value* input : link->inputs()) {
        if (input != nullptr && is_updated_between(*link, *links.back(), input)) return false;
      }
    }
    const std::vector<Value*> operands = operands_of(links);
    const auto is_long = [&](const Value* operand) {
      return has_long_runs(*operand, *links.back()->output(0));
    };
    if (!std::ranges::all_of(operands, is_long)) return false;
    const std::size_t results = results_of(links).size();
    return values <= kMostChainValues && operands.size() <= kMostChainInputs && results > 0 &&
           results <= kMostChainInputs;
  }

  bool is_updated_between(const Node& from, const Node& to, Value* value) const {
    const auto at = updated_at_.find(root_of(value));
    return at != updated_at_.end() && at->second > position(&from) && at->second < position(&to);
  }

  /// If anything else runs between the earlier links and the last, what they read must not take
  /// more memory meanwhile than what they would hand over.
  bool keeps_memory(const Links& earlier, const Links& links) const {
    const int end = position(links.back());
    const auto runs_between = [&] {
      for (int i = position(earlier.back()) + 1; i < end; ++i) {
        const Node* const node = nodes_[static_cast<std::size_t>(i)];
        if (!is_view(*node) && !contains(links, node)) return true;
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
    const auto body = std::make_shared<Graph>("chain", &graph_);
    ValueMap inside;
    const std::vector<Value*> operands = operands_of(links);
    for (const Value* operand : operands) {
      inside[operand] = body->add_input(operand->name(), {});
    }
    for (const Node* link : links) add_to_body(*body, *link, inside);
    const std::vector<Value*> results = results_of(links);
    std::vector<std::string> names;
    for (const Value* result : results) {
      body->add_output(inside.at(result));
      names.push_back(graph_.unique_name(result->name()));
    }
    Node* const chain = graph_.add_node("ElementwiseChain", kInternalDomain, operands, names,
                                        {{"body", body}}, links.back());
    for (std::size_t i = 0; i < results.size(); ++i) {
      Value* const output = chain->output(static_cast<int>(i));
      output->set_type(results[i]->type());
      output->layout = results[i]->layout;
      names[i] = results[i]->name();
      graph_.replace_all_uses(results[i], output);
    }
    for (auto link = links.rbegin(); link != links.rend(); ++link) graph_.remove(*link);
    for (std::size_t i = 0; i < results.size(); ++i) {
      graph_.rename(chain->output(static_cast<int>(i)), names[i]);
    }
  }

  static void add_to_body(Graph& body, const Node& link, ValueMap& inside) {
    std::vector<Value*> inputs;
    for (const Value* input : link.inputs()) {
      if (input != nullptr && !inside.contains(input)) {
        inside[input] = body.add_initializer(input->name(), input->initializer());
      }
      inputs.push_back(input == nullptr ? nullptr : inside.at(input));
    }
    const Value* const result = link.output(0);
    const Node* const copy =
        body.add_node(link.op_type(), link.domain(), inputs, {result->name()}, link.attributes);
    inside[result] = copy->output(0);
  }

  Graph& graph_;
  Device& device_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_map<const Value*, int> updated_at_;  // a variable: the place of its update
  std::unordered_map<const Node*, int> group_of_;
  std::vector<Links> groups_;
};

}  // namespace

bool fuse_chains(Graph& graph, Device& device) {
  const bool changed = Chains(graph, device).run();
  return changed;
}

}  // namespace graft::passes
