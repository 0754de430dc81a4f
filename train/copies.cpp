#include "train/copies.h"

#include <algorithm>

#include "core/graph/frozen.h"

namespace graft {

std::vector<std::vector<std::string>> find_copies(const std::vector<const Value*>& values) {
  constexpr std::int64_t kFew = 1024;
  std::vector<std::vector<const Value*>> groups;
  for (const Value* value : values) {
    const Tensor& tensor = value->initializer();
    if (!is_float(tensor.dtype()) || tensor.rank() != 2 || tensor.size() < kFew) continue;
    const auto known = std::ranges::find_if(groups, [&](const auto& group) {
      return are_copies(group.front()->initializer(), tensor);
    });
    if (known == groups.end()) {
      groups.push_back({value});
    } else {
      known->push_back(value);
    }
  }
  std::vector<std::vector<std::string>> names;
  for (auto& group : groups) {
    if (group.size() < 2) continue;
    std::ranges::stable_partition(group, [](const Value* value) {
      return value->role == Role::parameter || value->name().ends_with(".weight");
    });
    names.emplace_back();
    for (const Value* value : group) names.back().push_back(value->name());
  }
  return names;
}

std::vector<Tie> tie_copies(Model& model) {
  Graph& graph = model.graph();
  std::vector<const Value*> values;
  for (const Value* value : graph.initializers()) {
    if (!value->is_graph_input() && !value->is_graph_output()) values.push_back(value);
  }
  const std::vector<Tie> ties = tie_initializers(graph, find_copies(values));
  for (const Tie& tie : ties) graph.remove_initializer(graph.find(tie.follower));
  edit::forget_frozen(model);
  return ties;
}

}  // namespace graft
