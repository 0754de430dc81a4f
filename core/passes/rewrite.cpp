#include "core/passes/rewrite.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/alias.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {

/// Whether the sweep knows them.
[[maybe_unused]] bool are_listed(std::span<const Rewrite> rewrites) {
  return std::ranges::any_of(rewrite_passes(), [&](const RewritePass& pass) {
    return std::ranges::any_of(pass.rewrites(),
                               [&](const Rewrite& one) { return &one == rewrites.data(); });
  });
}

bool is_dead(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) return false;
  }
  return !updates_state(node);
}

/// Finds the first of the rewrites that fits the node.
const Rewrite* find_rewrite(std::span<const Rewrite> rewrites, const Node& node, Match& match) {
  const auto at = std::ranges::find_if(rewrites, [&](const Rewrite& one) {
    return may_be_root(one.match, node) && node.output() != nullptr &&
           find_match(one.match, *node.output(), one.where, match);
  });
  return at == rewrites.end() ? nullptr : &*at;
}

/// Outputs of the graph keep the names by which programs know them.
void apply(const Rewrite& rewrite, const Match& match) {
  const Results results = rewrite.to(match);
  if (results.list().empty()) return;
  Graph& graph = match.graph();
  Node& root = match.root();
  std::vector<std::pair<Value*, std::string>> outputs;
  for (std::size_t i = 0; i < results.list().size(); ++i) {
    Value* const from = root.output(static_cast<int>(i));
    if (from == nullptr) continue;
    Value* const to = results.list()[i].value();
    if (from->is_graph_output() && !to->is_graph_output() && to->producer() != nullptr) {
      outputs.emplace_back(to, from->name());
    }
    graph.replace_all_uses(from, to);
  }
  graph.remove(&root);
  for (const auto& [value, name] : outputs) graph.rename(value, name);
}

}  // namespace

Expr SampleNet::input(const Shape& shape, std::optional<DType> dtype) {
  Graph& graph = builder_.graph();
  const ValueType type{dtype.value_or(dtype_), SymShape(shape)};
  return builder_.expr(graph.add_input(graph.unique_name("x"), type));
}

Expr SampleNet::variable(const Shape& shape) {
  Value* const added = builder_.constant(Tensor::full(dtype_, shape, 1.0), "w");
  added->is_variable = true;
  return builder_.expr(added);
}

Expr SampleNet::number(double value, std::optional<DType> dtype) {
  return builder_.expr(builder_.constant(Tensor::full(dtype.value_or(dtype_), Shape{}, value)));
}

Expr SampleNet::constant(const Shape& shape, double first) {
  Tensor steps = Tensor::empty(DType::f64, shape);
  const std::span<double> values = steps.values<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = first + static_cast<double>(i) / static_cast<double>(values.size());
  }
  return builder_.expr(builder_.constant(steps.cast(dtype_)));
}

bool rewrite(Graph& graph, std::span<const Rewrite> rewrites) {
  assert(are_listed(rewrites));
  Match match(graph);
  bool changed = false;
  auto end = graph.nodes().end();  // of the nodes that are still to be looked at
  while (end != graph.nodes().begin()) {
    const auto at = std::prev(end);
    if (changed && is_dead(**at)) {
      graph.remove(at->get());
      continue;
    }
    const Rewrite* const found = find_rewrite(rewrites, **at, match);
    if (found == nullptr) {
      end = at;
      continue;
    }
    const bool is_first = at == graph.nodes().begin();
    const auto before = is_first ? at : std::prev(at);
    apply(*found, match);
    changed = true;
    if (is_first) break;
    end = std::next(before);  // new nodes are not looked at
  }
  if (changed) eliminate_dead(graph);
  return changed;
}

}  // namespace graft::passes
