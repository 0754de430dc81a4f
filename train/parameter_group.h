#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optim/schedule.h"

namespace graft {

/// How some parameters are updated where that differs from the others (PyTorch's param_groups, by
/// name). What is left out is as for all.
struct ParameterGroup {
  /// Regular expression (RE2) that the whole name of a parameter must match.
  std::string pattern;
  std::optional<float> lr = {};
  std::optional<float> weight_decay = {};
  std::optional<Schedule> schedule = {};
  /// How many updates the others make before the first of these. Until then they are frozen as
  /// those that TrainOptions::freeze names: no gradient is computed, and a BatchNormalization keeps
  /// its statistics.
  std::optional<std::int64_t> start = {};
};

/// Parameters that are updated alike.
struct UpdateGroup {
  std::vector<std::string> parameters = {};
  /// Before the schedule.
  float lr = 0.0F;
  /// Absent where the optimizer has none.
  std::optional<float> weight_decay = {};
  Schedule schedule = {};
  /// As ParameterGroup::start; 0: they train from the first update on.
  std::int64_t start = 0;
};

}  // namespace graft
