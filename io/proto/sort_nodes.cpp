#include "io/proto/sort_nodes.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace graft::onnx {
namespace {

using Nodes = Repeated<pb::NodeProto>;
using Edges = std::vector<std::vector<int>>;

bool is_sorted(const Edges& depends) {
  for (std::size_t i = 0; i < depends.size(); ++i) {
    for (const int on : depends[i]) {
      if (static_cast<std::size_t>(on) >= i) return false;
    }
  }
  return true;
}

/// Depth first, without recursion: a chain may be as long as the file allows.
class Sorter {
 public:
  Sorter(const Nodes& nodes, const Edges& depends, std::string_view where)
      : nodes_(nodes), depends_(depends), where_(where), state_(depends.size()) {}

  /// Positions of the nodes in an order that runs.
  std::vector<int> order() {
    for (int i = 0; i < nodes_.size(); ++i) visit(i);
    return std::move(order_);
  }

 private:
  enum class State : char { untouched, open, done };
  struct Frame {
    int node;
    std::size_t next;
  };

  State& state(int node) { return state_[static_cast<std::size_t>(node)]; }

  void enter(int node) {
    if (state(node) == State::done) return;
    if (state(node) == State::open) fail_with_cycle(node);
    state(node) = State::open;
    stack_.push_back({node, 0});
  }

  void visit(int root) {
    enter(root);
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      const std::vector<int>& on = depends_[static_cast<std::size_t>(top.node)];
      if (top.next < on.size()) {
        enter(on[top.next++]);
      } else {
        state(top.node) = State::done;
        order_.push_back(top.node);
        stack_.pop_back();
      }
    }
  }

  [[noreturn]] void fail_with_cycle(int node) const {
    constexpr std::ptrdiff_t kMostNamed = 8;
    const auto start = std::ranges::find(stack_, node, &Frame::node);
    std::string names;
    for (auto at = start; at != stack_.end() && at - start < kMostNamed; ++at) {
      names += label(nodes_[at->node]) + " <- ";
    }
    if (stack_.end() - start > kMostNamed) names += "... <- ";
    fail(ErrorKind::model, where_, " has a cycle: ", names, label(nodes_[node]));
  }

  const Nodes& nodes_;
  const Edges& depends_;
  std::string_view where_;
  std::vector<State> state_;
  std::vector<Frame> stack_;
  std::vector<int> order_;
};

}  // namespace

std::string label(const pb::NodeProto& node) {
  if (!node.name().empty()) return node.op_type() + " node '" + node.name() + "'";
  for (const std::string& output : node.output()) {
    if (!output.empty()) return node.op_type() + " node producing '" + output + "'";
  }
  return node.op_type() + " node";
}

void sort_nodes(Nodes& nodes, const Edges& depends, std::string_view where) {
  if (is_sorted(depends)) return;
  std::vector<int> order = Sorter(nodes, depends, where).order();
  // Follow the permutation's cycles: what stands at `at` belongs where `order` names it.
  for (int start = 0; start < nodes.size(); ++start) {
    int at = start;
    while (order[static_cast<std::size_t>(at)] != start) {
      const int from = std::exchange(order[static_cast<std::size_t>(at)], at);
      nodes.SwapElements(at, from);
      at = from;
    }
    order[static_cast<std::size_t>(at)] = at;
  }
}

}  // namespace graft::onnx
