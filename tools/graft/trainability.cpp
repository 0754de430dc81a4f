#include "tools/graft/trainability.h"

#include <unordered_set>

#include "autograd/backward.h"
#include "core/ops/registry.h"

namespace graft::cli {
namespace {

using Values = std::unordered_set<const Value*>;

bool reads_any(const Node& node, const Values& values) {
  bool found = false;
  for_each_read(node, [&](const Value& value) { found |= values.contains(&value); });
  return found;
}

/// What is computed from `start`; with `float_only`, by way of floating-point values.
Values downstream(const Graph& graph, Values start, bool float_only) {
  for (const auto& node : graph.nodes()) {
    if (!reads_any(*node, start)) continue;
    for (int i = 0; i < node->output_count(); ++i) {
      const Value* const output = node->output(i);
      if (output != nullptr && (!float_only || is_float(output->dtype()))) start.insert(output);
    }
  }
  return start;
}

/// What `output` is computed from.
Values upstream(const Graph& graph, const Value* output) {
  Values values{output};
  for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend(); ++at) {
    bool is_needed = false;
    for (int i = 0; i < (*at)->output_count(); ++i) is_needed |= values.contains((*at)->output(i));
    if (is_needed) for_each_read(**at, [&](const Value& value) { values.insert(&value); });
  }
  return values;
}

}  // namespace

std::vector<std::string> what_stops_gradients(const Graph& graph, const Value* output,
                                              const std::vector<const Value*>& parameters) {
  std::vector<std::string> lines = autograd::blockers(graph, {output}, parameters);
  const Values start(parameters.begin(), parameters.end());
  const Values reached = downstream(graph, start, true);
  if (!lines.empty() || parameters.empty() || reached.contains(output)) return lines;

  // No node refuses, and yet the output is cut off: every way leads through integers.
  const Values dependent = downstream(graph, start, false);
  const Values needed = upstream(graph, output);
  if (!dependent.contains(output)) return {"the output depends on no parameter"};
  for (const auto& node : graph.nodes()) {
    const OpDef* const def = OpRegistry::instance().find(*node);
    if ((def != nullptr && def->reads_only_shapes) || !reads_any(*node, reached)) continue;
    for (int i = 0; i < node->output_count(); ++i) {
      const Value* const value = node->output(i);
      if (value == nullptr || reached.contains(value) || !needed.contains(value)) continue;
      lines.push_back(
          text(node->label(), ": its output is ", value->type(), ", which has no gradient"));
    }
  }
  return lines;
}

}  // namespace graft::cli
