#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// How the learning rate changes over updates. A value type: `factor` has no state, so training can
/// resume at any step.
struct Schedule {
  enum class Kind { constant, step, exponential, cosine, one_cycle };
  Kind kind = Kind::constant;
  /// Updates at the start during which the rate rises linearly from 1/warmup (0: none). The
  /// schedule proper runs over the updates that follow.
  std::int64_t warmup = 0;
  /// step: the rate is multiplied by gamma every `every` updates.
  /// exponential: every update.
  float gamma = 0.1F;
  std::int64_t every = 1000;
  /// cosine: the last rate as a share of the first.
  float floor = 0.0F;
  /// one_cycle (PyTorch's OneCycleLR): the rate rises from lr/div to lr over the first `rise` share
  /// of updates and falls to lr/(div*final_div), both as a half cosine.
  float rise = 0.3F;
  float div = 25.0F;
  float final_div = 1e4F;

  /// Cosine and one_cycle run over all updates, so they must know how many there are.
  bool needs_total() const { return kind == Kind::cosine || kind == Kind::one_cycle; }

  /// What the base rate is multiplied by in update `step` (from 0) of `total`; past the end the
  /// last value stays. Throws Error{argument} if a setting makes no sense, if `step` is below 0, or
  /// if `total` is needed and not above 0.
  float factor(std::int64_t step, std::int64_t total) const;

  bool operator==(const Schedule& other) const = default;
};

/// The base rate in every update.
inline Schedule constant_lr() {
  return {};
}
/// The rate times gamma every `every` updates (PyTorch's StepLR, counted in updates).
inline Schedule step_lr(std::int64_t every, float gamma = 0.1F) {
  return {.kind = Schedule::Kind::step, .gamma = gamma, .every = every};
}
/// The rate times gamma in every update.
inline Schedule exponential_lr(float gamma) {
  return {.kind = Schedule::Kind::exponential, .gamma = gamma};
}
/// Half a cosine from the base rate to `floor` times it. Source: Loshchilov, Hutter, arXiv
/// 1608.03983.
inline Schedule cosine_lr(float floor = 0.0F) {
  return {.kind = Schedule::Kind::cosine, .floor = floor};
}
/// One rise and one fall over all updates. Source: Smith, Topin, arXiv 1708.07120.
inline Schedule one_cycle_lr() {
  return {.kind = Schedule::Kind::one_cycle};
}
/// The same schedule after a linear warm-up.
inline Schedule with_warmup(Schedule schedule, std::int64_t updates) {
  schedule.warmup = updates;
  return schedule;
}

/// What schedule_from_name takes, in the order of Schedule::Kind: "constant", "step",
/// "exponential", "cosine", "one-cycle".
std::vector<std::string> schedule_names();
/// Throws Error{argument} for an unknown name, listing the valid ones.
Schedule schedule_from_name(std::string_view name);

}  // namespace graft
