#include "train/averages.h"

#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "optim/state_names.h"

namespace graft {
namespace {

/// A variable of the model and what the step makes of it.
struct Change {
  std::string name;
  Value* variable;
  Value* content;
};

std::vector<Change> changes_of(const Graph& graph, const std::vector<Master>& masters,
                               const StateTensors& state) {
  std::vector<Change> changes;
  for (const auto& node : graph.nodes()) {
    for (const Alias& alias : OpRegistry::instance().get(*node).aliases) {
      Value* const variable = node->input(alias.input);
      Value* const content = node->output(alias.output);
      if (alias.kind != AliasKind::state || variable == nullptr || content == nullptr) continue;
      const auto master = std::ranges::find(masters, variable, &Master::value);
      const bool is_wide = variable->dtype() == DType::f32 || variable->dtype() == DType::f64;
      if (master != masters.end()) {
        changes.push_back({master->parameter, variable, content});
      } else if (is_wide && !state.contains(variable->name())) {
        changes.push_back({variable->name(), variable, content});
      }
    }
  }
  return changes;
}

/// 1 - d, where d is the decay, but at most (1 + t) / (10 + t) in update t.
Expr share_of_new(const Expr& step, float decay) {
  const Expr t = cast(step, DType::f32);
  const Expr most = (t + 1.0) / (t + 10.0);
  return 1.0 - call("Min", {most, constant_like(most, decay)});
}

}  // namespace

bool is_name_from(std::string_view stem, std::string_view name) {
  if (!name.starts_with(stem)) return false;
  const std::string_view rest = name.substr(stem.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return rest.empty() ||
         (rest.size() > 1 && rest.front() == '_' && std::ranges::all_of(rest.substr(1), is_digit));
}

std::vector<Value*> add_averages(Graph& graph, const std::vector<Master>& masters, const Expr& step,
                                 float decay, const StateTensors& state) {
  const Expr share = share_of_new(step, decay);
  Builder& builder = step.builder();
  std::vector<Value*> averages;
  for (const Change& change : changes_of(graph, masters, state)) {
    const std::string name = graph.unique_name(text(change.name, ".", kAverage));
    const auto kept = state.find(name);
    Value* const average = graph.add_initializer(
        name, kept == state.end() ? change.variable->initializer().clone() : kept->second);
    average->is_variable = true;
    averages.push_back(average);
    const Expr old = builder.expr(average);
    const Expr content = builder.expr(change.content);
    call_internal("Assign", {old, old + (content - old) * cast(share, old.dtype())});
  }
  return averages;
}

std::map<std::string, Tensor> take_averages(const std::map<std::string, Tensor>& weights,
                                            const StateTensors& state) {
  std::map<std::string, Tensor> held;
  for (const auto& [name, weight] : weights) {
    const auto at =
        std::ranges::find_if(state, [&, stem = text(name, ".", kAverage)](const auto& kept) {
          return is_name_from(stem, kept.first);
        });
    if (at == state.end()) continue;
    const Tensor& average = at->second;
    held.emplace(name, weight.clone());
    weight.copy_from(average.dtype() == weight.dtype() ? average
                                                       : average.to(cpu()).cast(weight.dtype()));
  }
  return held;
}

}  // namespace graft
