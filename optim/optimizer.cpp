#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "optim/state_names.h"

namespace graft {
namespace {

/// What the row says, of the optimizer that it is.
template <HasRow T>
const OptimizerRow<T>& row_of(const T& /*optimizer*/) {
  static const OptimizerRow<T> row = T::row();
  return row;
}

/// One of each kind that has a row, with its default settings.
template <class... Kinds>
std::vector<Optimizer> defaults(const std::variant<Kinds...>* /*tag*/) {
  std::vector<Optimizer> all;
  const auto add = [&]<class T>(T kind) {
    if constexpr (HasRow<T>) all.emplace_back(std::move(kind));
  };
  (add(Kinds{}), ...);
  return all;
}

std::vector<Optimizer> all_optimizers() {
  return defaults(static_cast<const Optimizer*>(nullptr));
}

void require(bool condition, std::string_view setting, float found, std::string_view wanted) {
  if (!condition) {
    fail(ErrorKind::argument, "optimizer: ", setting, " is ", found, ", wanted ", wanted);
  }
}

void check_share(std::string_view setting, float value) {
  require(value >= 0.0F && value < 1.0F, setting, value, "a number in [0, 1)");
}

void check_amount(std::string_view setting, float value) {
  require(value >= 0.0F && std::isfinite(value), setting, value, "a finite number of at least 0");
}

template <class T>
void check_setting(const OptimizerSetting<T>& setting, float value) {
  using Range = typename OptimizerSetting<T>::Range;
  switch (setting.range) {
    case Range::amount:
      return check_amount(setting.name, value);
    case Range::share:
      return check_share(setting.name, value);
    case Range::any:
      return require(std::isfinite(value), setting.name, value, "a finite number");
  }
}

template <HasRow T>
void check_settings(const T& o) {
  const OptimizerRow<T>& row = row_of(o);
  for (const OptimizerSetting<T>& setting : row.settings) {
    check_setting(setting, number(setting, o));
  }
  const std::string_view problem = row.problem == nullptr ? "" : row.problem(o);
  if (!problem.empty()) fail(ErrorKind::argument, "optimizer: ", problem);
}

constexpr std::array<std::string_view, 3> kNamesOfSteps{kAverage, kAccumulated, kMaster};

void check_settings(const CustomOptimizer& o) {
  if (!o.step) fail(ErrorKind::argument, "optimizer: step is empty, wanted a formula");
  for (const std::string& state : o.state) {
    if (state.empty() || std::ranges::count(o.state, state) > 1) {
      fail(ErrorKind::argument, "optimizer: state is called '", state,
           "', wanted names that differ and are not empty");
    }
    if (std::ranges::find(kNamesOfSteps, state) != kNamesOfSteps.end()) {
      fail(ErrorKind::argument, "optimizer: state is called '", state,
           "', as what a training step keeps itself; wanted another name");
    }
  }
}

template <HasRow T>
std::string_view why_state_needs_f32(const T& o) {
  const OptimizerRow<T>& row = row_of(o);
  return row.needs_f32 == nullptr ? "" : row.needs_f32(o);
}

std::string_view why_state_needs_f32(const CustomOptimizer& /*formula*/) {
  return "state of a formula cannot be stored in bf16; keep it in f32";
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : all_optimizers()) names.emplace_back(name(optimizer));
  return names;
}

Optimizer optimizer_from_name(std::string_view wanted) {
  std::string valid;
  for (const Optimizer& optimizer : all_optimizers()) {
    if (name(optimizer) == wanted) return optimizer;
    valid += (valid.empty() ? "" : ", ") + std::string(name(optimizer));
  }
  fail(ErrorKind::argument, "unknown optimizer '", wanted, "'; valid: ", valid);
}

std::string_view name(const Optimizer& optimizer) {
  const auto name_of = []<class T>(const T& o) -> std::string_view {
    if constexpr (HasRow<T>) {
      return row_of(o).name;
    } else {
      return "custom";
    }
  };
  return std::visit(name_of, optimizer);
}

std::vector<std::string> state_names(const Optimizer& optimizer) {
  const auto names_of = []<class T>(const T& o) -> std::vector<std::string> {
    if constexpr (HasRow<T>) {
      std::vector<std::string> names;
      for (const OptimizerState<T>& state : row_of(o).state) {
        if (state.is_kept == nullptr || state.is_kept(o)) names.emplace_back(state.name);
      }
      return names;
    } else {
      return o.state;
    }
  };
  return std::visit(names_of, optimizer);
}

float learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

void set_learning_rate(Optimizer& optimizer, float lr) {
  std::visit([lr](auto& o) { o.lr = lr; }, optimizer);
}

void set_setting(Optimizer& optimizer, std::string_view setting, float value) {
  const auto set = [&]<class T>(T& o) {
    if constexpr (HasRow<T>) {
      for (const OptimizerSetting<T>& one : row_of(o).settings) {
        if (one.name != setting) continue;
        std::visit([&]<class M>(M T::*member) { o.*member = static_cast<M>(value); }, one.member);
        return;
      }
    }
    fail(ErrorKind::argument, "optimizer ", name(optimizer), " has no ", setting, " setting");
  };
  std::visit(set, optimizer);
}

void set_momentum(Optimizer& optimizer, float momentum) {
  set_setting(optimizer, "momentum", momentum);
}

void set_weight_decay(Optimizer& optimizer, float weight_decay) {
  set_setting(optimizer, "weight_decay", weight_decay);
}

std::optional<float> weight_decay(const Optimizer& optimizer) {
  const auto get = []<class T>(const T& o) -> std::optional<float> {
    if constexpr (HasRow<T>) return o.weight_decay;
    return std::nullopt;
  };
  return std::visit(get, optimizer);
}

void check(const Optimizer& optimizer) {
  std::visit(
      [](const auto& o) {
        check_amount("lr", o.lr);
        check_settings(o);
      },
      optimizer);
}

void check(const Optimizer& optimizer, StatePrecision precision) {
  if (precision == StatePrecision::f32) return;
  const std::string_view reason =
      std::visit([](const auto& o) { return why_state_needs_f32(o); }, optimizer);
  if (!reason.empty()) fail(ErrorKind::unsupported, "optimizer: ", reason);
}

}  // namespace graft
