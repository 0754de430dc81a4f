#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/error.h"

namespace graft {
namespace {

/// Of the optimizers that have one: all alternatives but the last.
constexpr std::array<std::string_view, std::variant_size_v<Optimizer> - 1> kNames{
    "sgd", "adam", "adamw", "rmsprop", "adagrad"};

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

void check_settings(const SGD& o) {
  check_amount("momentum", o.momentum);
  require(std::isfinite(o.dampening), "dampening", o.dampening, "a finite number");
  require(!o.nesterov || (o.momentum > 0.0F && o.dampening == 0.0F), "nesterov", o.momentum,
          "momentum above 0 and no dampening");
}

template <class AdamLike>
requires requires(AdamLike o) {
  o.beta1;
}
void check_settings(const AdamLike& o) {
  check_share("beta1", o.beta1);
  check_share("beta2", o.beta2);
  check_amount("epsilon", o.epsilon);
}

void check_settings(const RMSprop& o) {
  check_share("alpha", o.alpha);
  check_amount("momentum", o.momentum);
  check_amount("epsilon", o.epsilon);
}

void check_settings(const Adagrad& o) {
  check_amount("lr_decay", o.lr_decay);
  check_amount("epsilon", o.epsilon);
}

void check_settings(const CustomOptimizer& o) {
  if (!o.step) fail(ErrorKind::argument, "optimizer: step is empty, wanted a formula");
  for (const std::string& state : o.state) {
    if (state.empty() || std::ranges::count(o.state, state) > 1) {
      fail(ErrorKind::argument, "optimizer: state is called '", state,
           "', wanted names that differ and are not empty");
    }
  }
}

[[noreturn]] void fail_without_setting(const Optimizer& optimizer, std::string_view setting) {
  fail(ErrorKind::argument, "optimizer ", name(optimizer), " has no ", setting, " setting");
}

}  // namespace

std::vector<std::string> optimizer_names() {
  return {kNames.begin(), kNames.end()};
}

Optimizer optimizer_from_name(std::string_view wanted) {
  const std::array<Optimizer, kNames.size()> defaults{SGD{}, Adam{}, AdamW{}, RMSprop{}, Adagrad{}};
  for (const Optimizer& optimizer : defaults) {
    if (name(optimizer) == wanted) return optimizer;
  }
  std::string valid;
  for (const std::string_view known : kNames) {
    valid += (valid.empty() ? "" : ", ") + std::string(known);
  }
  fail(ErrorKind::argument, "unknown optimizer '", wanted, "'; valid: ", valid);
}

std::string_view name(const Optimizer& optimizer) {
  return optimizer.index() < kNames.size() ? kNames[optimizer.index()] : "custom";
}

float learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

void set_learning_rate(Optimizer& optimizer, float lr) {
  std::visit([lr](auto& o) { o.lr = lr; }, optimizer);
}

void set_momentum(Optimizer& optimizer, float momentum) {
  std::visit(
      [&](auto& o) {
        if constexpr (requires { o.momentum; }) {
          o.momentum = momentum;
        } else {
          fail_without_setting(optimizer, "momentum");
        }
      },
      optimizer);
}

void set_weight_decay(Optimizer& optimizer, float weight_decay) {
  std::visit(
      [&](auto& o) {
        if constexpr (requires { o.weight_decay; }) {
          o.weight_decay = weight_decay;
        } else {
          fail_without_setting(optimizer, "weight_decay");
        }
      },
      optimizer);
}

void check(const Optimizer& optimizer) {
  std::visit(
      [](const auto& o) {
        check_amount("lr", o.lr);
        if constexpr (requires { o.weight_decay; }) check_amount("weight_decay", o.weight_decay);
        check_settings(o);
      },
      optimizer);
}

void check(const Optimizer& optimizer, StatePrecision precision) {
  if (precision == StatePrecision::bf16 && std::holds_alternative<CustomOptimizer>(optimizer)) {
    fail(ErrorKind::unsupported,
         "optimizer: state of a formula cannot be stored in bf16; keep it in f32");
  }
  const RMSprop* const rmsprop = std::get_if<RMSprop>(&optimizer);
  if (precision == StatePrecision::bf16 && rmsprop != nullptr && rmsprop->centered) {
    fail(ErrorKind::unsupported,
         "optimizer: centered rmsprop subtracts one average from another, for which state in bf16 "
         "has too few digits; keep it in f32, or leave out centered");
  }
}

}  // namespace graft
