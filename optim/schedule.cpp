#include "optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace graft {
namespace {

constexpr std::array<std::string_view, 5> kNames{"constant", "step", "exponential", "cosine",
                                                 "one-cycle"};

/// From `first` to `last` along half a cosine as `share` goes from 0 to 1.
double half_cosine(double first, double last, double share) {
  return last + (first - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
}

/// PyTorch's phases: up to step rise*total - 1, then down to step total - 1.
double one_cycle(const Schedule& s, std::int64_t step, std::int64_t total) {
  const double peak_step = static_cast<double>(s.rise) * static_cast<double>(total) - 1.0;
  const double last_step = static_cast<double>(total) - 1.0;
  const double at = std::min(static_cast<double>(step), last_step);
  const double start = 1.0 / s.div;
  if (at <= peak_step) return peak_step > 0.0 ? half_cosine(start, 1.0, at / peak_step) : 1.0;
  return half_cosine(1.0, start / s.final_div, (at - peak_step) / (last_step - peak_step));
}

double after_warmup(const Schedule& s, std::int64_t step, std::int64_t total) {
  const auto at = static_cast<double>(step);
  switch (s.kind) {
    case Schedule::Kind::constant:
      return 1.0;
    case Schedule::Kind::step: {
      const std::int64_t drops = step / s.every;
      return std::pow(static_cast<double>(s.gamma), static_cast<double>(drops));
    }
    case Schedule::Kind::exponential:
      return std::pow(static_cast<double>(s.gamma), at);
    case Schedule::Kind::cosine:
      return half_cosine(1.0, s.floor, std::min(1.0, at / static_cast<double>(total)));
    case Schedule::Kind::one_cycle:
      return one_cycle(s, step, total);
  }
  return 1.0;
}

void check(const Schedule& s) {
  const auto require = [](bool condition, std::string_view setting, auto found) {
    if (!condition) fail(ErrorKind::argument, "schedule: ", setting, " cannot be ", found);
  };
  require(s.warmup >= 0, "warmup", s.warmup);
  require(s.every > 0, "every", s.every);
  require(s.gamma > 0.0F && std::isfinite(s.gamma), "gamma", s.gamma);
  require(s.floor >= 0.0F && std::isfinite(s.floor), "floor", s.floor);
  require(s.rise >= 0.0F && s.rise <= 1.0F, "rise", s.rise);
  require(s.div > 0.0F && std::isfinite(s.div), "div", s.div);
  require(s.final_div > 0.0F && std::isfinite(s.final_div), "final_div", s.final_div);
}

}  // namespace

float Schedule::factor(std::int64_t step, std::int64_t total) const {
  check(*this);
  if (step < 0) fail(ErrorKind::argument, "schedule: update ", step, ", wanted 0 or more");
  if (needs_total() && total <= 0) {
    fail(ErrorKind::argument, "schedule ", kNames.at(static_cast<std::size_t>(kind)),
         " needs the total number of updates; got ", total);
  }
  if (step < warmup) {
    return static_cast<float>(static_cast<double>(step + 1) / static_cast<double>(warmup));
  }
  return static_cast<float>(
      after_warmup(*this, step - warmup, std::max<std::int64_t>(1, total - warmup)));
}

std::vector<std::string> schedule_names() {
  return {kNames.begin(), kNames.end()};
}

Schedule schedule_from_name(std::string_view name) {
  const auto* const at = std::ranges::find(kNames, name);
  if (at == kNames.end()) {
    std::string valid;
    for (const std::string_view known : kNames) {
      valid += (valid.empty() ? "" : ", ") + std::string(known);
    }
    fail(ErrorKind::argument, "unknown schedule '", name, "'; valid: ", valid);
  }
  return {.kind = static_cast<Schedule::Kind>(at - kNames.begin())};
}

}  // namespace graft
