#include "train/update_groups.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "core/base/regex.h"
#include "train/layer_order.h"
#include "train/train_step.h"
#include "train/trainable.h"

namespace graft {
namespace {

using Names = std::vector<std::string>;

Clock clock(const UpdateGroup& group) {
  return {group.lr, group.schedule, group.start};
}

bool are_alike(const UpdateGroup& a, const UpdateGroup& b) {
  return clock(a) == clock(b) && a.weight_decay == b.weight_decay;
}

/// Those of `parameters` that the group's pattern matches.
Names matches(const ParameterGroup& group, const Names& parameters) {
  const auto pattern = [&] {
    try {
      return Regex(group.pattern);
    } catch (const Error& error) {
      fail(error.kind(), "parameter group ", error.what());
    }
  }();
  Names names;
  std::ranges::copy_if(parameters, std::back_inserter(names),
                       [&](const std::string& name) { return pattern.full_match(name); });
  if (names.empty()) {
    fail(ErrorKind::argument, "parameter group '", group.pattern, "' matches none of the ",
         parameters.size(), " parameters that train: ", some_of(parameters));
  }
  return names;
}

void check(const ParameterGroup& group, const TrainOptions& options) {
  const auto refuse = [&](std::string_view setting, auto found, std::string_view wanted) {
    fail(ErrorKind::argument, "parameter group '", group.pattern, "': ", setting, " is ", found,
         ", wanted ", wanted);
  };
  if (group.lr && !(*group.lr >= 0.0F && std::isfinite(*group.lr))) {
    refuse("the learning rate", *group.lr, "a finite number of at least 0");
  }
  if (group.start && *group.start < 0) refuse("start", *group.start, "an update, from 0 on");
  if (group.schedule) group.schedule->factor(0, 1);  // throws if a setting makes no sense
  if (!group.weight_decay) return;
  Optimizer optimizer = *options.optimizer;
  set_weight_decay(optimizer, *group.weight_decay);
  graft::check(optimizer);
}

/// The parameter's settings over those that it has: the last group counts.
void take(const ParameterGroup& group, UpdateGroup& settings) {
  settings.lr = group.lr.value_or(settings.lr);
  if (group.weight_decay) settings.weight_decay = group.weight_decay;
  settings.schedule = group.schedule.value_or(settings.schedule);
  settings.start = group.start.value_or(settings.start);
}

/// The base rate of each layer.
std::vector<float> layer_rates(const Graph& graph, const Names& parameters, float base,
                               float decay) {
  if (!(decay > 0.0F && decay <= 1.0F)) {
    fail(ErrorKind::argument, "layer decay is ", decay, ", wanted a number above 0, at most 1");
  }
  std::vector<float> rates(parameters.size(), base);
  if (decay == 1.0F) return rates;
  const std::vector<int> layers = layer_order(graph, parameters);
  const int last = *std::ranges::max_element(layers);
  std::ranges::transform(layers, rates.begin(), [&](int layer) {
    return static_cast<float>(base * std::pow(static_cast<double>(decay), last - layer));
  });
  return rates;
}

}  // namespace

const UpdateGroup* UpdateGroups::find(const std::string& parameter) const {
  const auto at = std::ranges::find_if(groups, [&](const UpdateGroup& group) {
    return std::ranges::find(group.parameters, parameter) != group.parameters.end();
  });
  return at == groups.end() ? nullptr : &*at;
}

std::vector<const UpdateGroup*> UpdateGroups::find_all(const Names& parameters) const {
  if (groups.size() == 1 && groups.front().parameters == parameters) {
    return std::vector<const UpdateGroup*>(parameters.size(), &groups.front());
  }
  std::unordered_map<std::string_view, const UpdateGroup*> known;
  for (const UpdateGroup& group : groups) {
    for (const std::string& parameter : group.parameters) known.try_emplace(parameter, &group);
  }
  std::vector<const UpdateGroup*> found(parameters.size(), nullptr);
  std::ranges::transform(parameters, found.begin(), [&](const std::string& name) {
    const auto at = known.find(name);
    return at == known.end() ? nullptr : at->second;
  });
  return found;
}

std::size_t UpdateGroups::clock_of(const UpdateGroup& group) const {
  return static_cast<std::size_t>(std::ranges::find(clocks, clock(group)) - clocks.begin());
}

std::size_t UpdateGroups::started(std::int64_t updates) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(clocks, [&](const Clock& c) { return c.start <= updates; }));
}

float UpdateGroups::rate(const Clock& clock, float base, std::int64_t updates,
                         std::int64_t total) const {
  if (clock.start > updates) return 0.0F;
  const float first = clocks.front().lr;
  const bool is_fixed = first == 0.0F;  // nothing is in proportion to 0
  const float own = is_fixed ? clock.lr : clock.lr * (base / first);
  return (clock.lr == first ? base : own) * clock.schedule.factor(updates, total);
}

Names UpdateGroups::frozen(std::int64_t updates) const {
  Names names;
  for (const UpdateGroup& group : groups) {
    if (group.start <= updates) continue;
    names.insert(names.end(), group.parameters.begin(), group.parameters.end());
  }
  return names;
}

UpdateGroups group_updates(const Graph& graph, const Names& parameters,
                           const TrainOptions& options) {
  UpdateGroups result;
  if (!options.optimizer) return result;
  const float base = learning_rate(*options.optimizer);
  const std::vector<float> rates = layer_rates(graph, parameters, base, options.layer_decay);
  std::vector<Names> matched;
  for (const ParameterGroup& group : options.groups) {
    check(group, options);
    matched.push_back(matches(group, parameters));
  }
  result.clocks = {{base, options.schedule, 0}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    UpdateGroup settings{.parameters = {parameters[i]},
                         .lr = rates[i],
                         .weight_decay = weight_decay(*options.optimizer),
                         .schedule = options.schedule};
    for (std::size_t g = 0; g < matched.size(); ++g) {
      const bool has_it = std::ranges::find(matched[g], parameters[i]) != matched[g].end();
      if (has_it) take(options.groups[g], settings);
    }
    const auto same = std::ranges::find_if(
        result.groups, [&](const UpdateGroup& group) { return are_alike(group, settings); });
    if (same != result.groups.end()) {
      same->parameters.push_back(parameters[i]);
      continue;
    }
    if (result.clock_of(settings) == result.clocks.size()) result.clocks.push_back(clock(settings));
    result.groups.push_back(std::move(settings));
  }
  const auto starts = [](const UpdateGroup& group) { return group.start == 0; };
  if (std::ranges::none_of(result.groups, starts)) {
    fail(ErrorKind::argument, "all parameters start later, so the first update would change none; ",
         "let some train from update 0 on");
  }
  return result;
}

}  // namespace graft
