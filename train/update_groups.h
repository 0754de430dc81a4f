#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "train/parameter_group.h"

namespace graft {

struct TrainOptions;

/// Rate and count of the updates of some groups: what a step's graph gets as `lr` and `step`.
struct Clock {
  float lr = 0.0F;
  Schedule schedule = {};
  std::int64_t start = 0;

  bool operator==(const Clock& other) const = default;
};

/// How the parameters of a step are updated: PyTorch's param_groups.
struct UpdateGroups {
  /// In the order of their first parameters; none without an optimizer.
  std::vector<UpdateGroup> groups = {};
  /// Each once. The first is that of the options, even if no group goes by it.
  std::vector<Clock> clocks = {Clock{}};

  /// The group that has the parameter; null where it goes by the options alone.
  const UpdateGroup* find(const std::string& parameter) const;
  /// The same for many parameters at once, in their order; valid while the groups are.
  std::vector<const UpdateGroup*> find_all(const std::vector<std::string>& parameters) const;
  /// The index of the group's clock.
  std::size_t clock_of(const UpdateGroup& group) const;
  /// How many clocks have started before update `updates` (from 0): a step that was made for as
  /// many has the same parameters.
  std::size_t started(std::int64_t updates) const;
  /// The clock's rate in that update of `total`, 0 before it starts. Groups that have the
  /// optimizer's rate go by the base rate, which may have changed since; others keep their
  /// proportion to it.
  float rate(const Clock& clock, float base, std::int64_t updates, std::int64_t total) const;
  /// Those that are still frozen in that update.
  std::vector<std::string> frozen(std::int64_t updates) const;
};

/// Groups the parameters as TrainOptions::groups and layer_decay say. A parameter takes each
/// setting from the last group that has it and whose pattern matches. `graph`: in the newest form.
/// Throws Error{argument} if a pattern matches none, or if a setting makes no sense.
UpdateGroups group_updates(const Graph& graph, const std::vector<std::string>& parameters,
                           const TrainOptions& options);

}  // namespace graft
