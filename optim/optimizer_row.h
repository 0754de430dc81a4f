#pragma once

#include <string_view>
#include <variant>
#include <vector>

namespace graft {

/// A setting of optimizer T.
template <class T>
struct OptimizerSetting {
  enum class Range {
    amount,  ///< finite, at least 0
    share,   ///< in [0, 1)
    any,     ///< finite
  };
  /// That of the member; if the update op has an attribute of this name, it gets the number.
  std::string_view name;
  std::variant<float T::*, bool T::*> member;
  Range range = Range::amount;
};

/// A tensor that optimizer T keeps for each parameter.
template <class T>
struct OptimizerState {
  std::string_view name;
  bool (*is_kept)(const T& optimizer) = nullptr;  ///< null: always
};

/// All that Graft knows about an optimizer, in one place: names, checks, the update node, the
/// settings of recorded runs and tests follow from it.
template <class T>
struct OptimizerRow {
  std::string_view name;  ///< that users write: "adam"
  std::string_view op;    ///< that does the update (core/ops/train/update.cpp)
  /// All but the learning rate.
  std::vector<OptimizerSetting<T>> settings;
  /// In the order of the op's inputs, behind parameter, gradient, rate and step.
  std::vector<OptimizerState<T>> state = {};
  /// Attributes of the op that are 1.
  std::vector<std::string_view> flags = {};
  /// What is wrong with settings that each make sense; empty if nothing is.
  std::string_view (*problem)(const T& optimizer) = nullptr;
  /// Why the state cannot be stored in bf16; empty if it can.
  std::string_view (*needs_f32)(const T& optimizer) = nullptr;
};

/// Not so a formula of the program's own: it is not looked up by name and has no settings.
template <class T>
concept HasRow = requires {
  T::row();
};

/// A setting as a number; a switch that is on is 1.
template <class T>
float number(const OptimizerSetting<T>& setting, const T& optimizer) {
  return std::visit([&](auto member) { return static_cast<float>(optimizer.*member); },
                    setting.member);
}

}  // namespace graft
