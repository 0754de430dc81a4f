#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/infer.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Tensors that were stacked along an axis of `whole`, moved to the front and taken one by one.
struct Stack {
  Value* whole;
  int axis;
  std::vector<Node*> takes;  ///< the Gather of each index, in order
};

/// The Gathers of each index along axis 0, in order, when nothing else reads the value.
std::vector<Node*> takes_of(const Value& value, std::int64_t count) {
  std::vector<Node*> takes(static_cast<std::size_t>(count), nullptr);
  if (value.is_graph_output() || std::ssize(value.uses()) != count) return {};
  for (const Use& use : value.uses()) {
    const Tensor index =
        use.node->is("Gather") && use.index == 0 ? constant_of(use.node->input(1)) : Tensor();
    if (!index.defined() || index.rank() != 0 || use.node->attributes.get_int("axis", 0) != 0) {
      return {};
    }
    const auto at = static_cast<std::int64_t>(to_double(index).front());
    if (at < 0 || at >= count || takes[static_cast<std::size_t>(at)] != nullptr) return {};
    takes[static_cast<std::size_t>(at)] = use.node;
  }
  return takes;
}

/// The axis that the transpose brings to the front, if the others that count stay in order.
std::optional<int> front_axis(const Node& transpose) {
  const Shape shape = transpose.input(0)->known_shape();
  const std::vector<std::int64_t> order = transpose.attributes.get_ints("perm");
  if (std::ssize(order) != shape.rank() || order.empty()) return std::nullopt;
  std::vector<std::int64_t> rest;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (shape[static_cast<int>(order[i])] != 1) rest.push_back(order[i]);
  }
  if (order.front() == 0 || !std::ranges::is_sorted(rest)) return std::nullopt;
  return static_cast<int>(order.front());
}

std::optional<Stack> match(Node& transpose) {
  if (!transpose.is("Transpose") || !transpose.input(0)->shape() ||
      !transpose.input(0)->shape()->known()) {
    return std::nullopt;
  }
  const std::optional<int> axis = front_axis(transpose);
  if (!axis) return std::nullopt;
  const Shape shape = transpose.output()->known_shape();
  const Value* stacked = transpose.output();
  const Node* const view = only_reader(stacked);
  if (view != nullptr && (view->is("Squeeze") || view->is("Reshape"))) stacked = view->output();
  if (!stacked->shape() || !stacked->shape()->known() || stacked->shape()->rank() == 0 ||
      stacked->known_shape()[0] != shape[0] || shape.size() == 0) {
    return std::nullopt;
  }
  std::vector<Node*> takes = takes_of(*stacked, shape[0]);
  if (takes.empty()) return std::nullopt;
  return Stack{transpose.input(0), *axis, std::move(takes)};
}

void split(Graph& graph, Node* before, const Stack& stack) {
  Builder builder(graph, before);
  const auto count = static_cast<int>(stack.takes.size());
  const std::vector<Expr> parts = call_multi("Split", "", {builder.expr(stack.whole)}, count,
                                             {{"axis", stack.axis}, {"num_outputs", count}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Value* const taken = stack.takes[i]->output();
    graph.replace_all_uses(taken, reshape(parts[i], taken->known_shape()).value());
  }
}

}  // namespace

bool split_stacks(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (const std::optional<Stack> stack = match(*node)) {
      split(graph, node.get(), *stack);
      changed = true;
    }
  }
  if (changed) eliminate_dead(graph);
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
