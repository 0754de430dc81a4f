// The match is walked down by hand from the Transpose: a pattern looks up from one value, and here
// many are made of one.
#include <algorithm>

#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace stack_splitting {

const Pattern whole = any();

/// The Gathers of each index along axis 0, in order, when nothing else reads the value.
std::vector<Node*> takes_of(const Value& value, std::int64_t count) {
  if (value.is_graph_output() || std::ssize(value.uses()) != count) return {};
  std::vector<Node*> takes(static_cast<std::size_t>(count), nullptr);
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

/// The Gathers that take all that was stacked, maybe behind a view.
std::vector<Node*> takes_behind(const Match& m) {
  const std::int64_t count = m.result()->known_shape()[0];
  const Value* stacked = m.result();
  const Node* const view = only_reader(stacked);
  if (view != nullptr && (view->is("Squeeze") || view->is("Reshape"))) stacked = view->output();
  const std::optional<Shape> shape = shape_of(stacked);
  if (!shape || shape->rank() == 0 || (*shape)[0] != count || shape->size() == 0) return {};
  return takes_of(*stacked, count);
}

Results split(const Match& m) {
  const std::vector<Node*> takes = takes_behind(m);
  const std::vector<Expr> parts =
      call_multi("Split", "", {m[whole]}, static_cast<int>(takes.size()),
                 {{"axis", front_axis(m.root()).value()}, {"num_outputs", takes.size()}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Value* const taken = takes[i]->output();
    m.graph().replace_all_uses(taken, reshape(parts[i], taken->known_shape()).value());
  }
  return {};
}

/// Takes all along the axis that `order` moves to the front, which `view` makes of the stack.
Results sample(const Expr& in, const std::vector<std::int64_t>& order,
               Expr (*view)(const Expr&) = nullptr) {
  const Expr moved = transpose(in, order);
  const Expr stack = view == nullptr ? moved : view(moved);
  std::vector<Expr> takes;
  for (std::int64_t i = moved.shape()[0]; i-- > 0;) {
    const Expr at = in.builder().expr(in.builder().constant(Tensor::scalar(i)));
    takes.push_back(call("Gather", {stack, at}, {{"axis", 0}}));
  }
  return takes;
}

const std::vector<Rewrite> kRewrites{
    {.name = "split_stack",
     .match = op("Transpose", {whole}),
     .where = [](const Match& m) { return front_axis(m.root()) && !takes_behind(m).empty(); },
     .to = split,
     .samples = {{"parts_of_a_product",
                  [](SampleNet& net) {
                    return sample(net.input({4, 2, 3, 5}), {2, 0, 1, 3});
                  }},
                 {"last_axis",
                  [](SampleNet& net) {
                    return sample(net.input({4, 3, 2}), {2, 0, 1});
                  }},
                 {"squeezed",
                  [](SampleNet& net) {
                    return sample(net.input({1, 5, 3, 2}), {2, 1, 0, 3}, [](const Expr& stack) {
                      return reshape(stack, {3, 5, 2});
                    });
                  }}}},
};

}  // namespace stack_splitting
}  // namespace

std::span<const Rewrite> split_stacks_rewrites() {
  return stack_splitting::kRewrites;
}

bool split_stacks(Graph& graph) {
  return rewrite(graph, stack_splitting::kRewrites);
}

}  // namespace graft::passes
