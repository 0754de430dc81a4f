#pragma once

#include <limits>
#include <numbers>
#include <string_view>

namespace graft {

struct Loss;

/// Throws Error{argument}, listing what the loss has, for a setting that is not its default and
/// that no loss of this name reads. Of losses with a formula nothing is refused.
void check_has_settings(const Loss& loss);

/// The numbers that a setting of a loss may be, and the words for them.
struct SettingRange {
  float least;
  float most;
  bool has_least;
  bool has_most;
  std::string_view wanted;

  /// False for a NaN.
  constexpr bool holds(float number) const {
    const bool is_above = has_least ? number >= least : number > least;
    return is_above && (has_most ? number <= most : number < most);
  }
};

inline constexpr float kGreatestSetting = std::numeric_limits<float>::max();
inline constexpr SettingRange kBelowOne{0.0F, 1.0F, true, false, "a number from 0 to below 1"};
inline constexpr SettingRange kToOne{0.0F, 1.0F, true, true, "a number from 0 to 1"};
inline constexpr SettingRange kFromZero{0.0F, kGreatestSetting, true, true,
                                        "a number of at least 0"};
inline constexpr SettingRange kAboveZero{0.0F, kGreatestSetting, false, true, "a number above 0"};
inline constexpr SettingRange kAngle{0.0F, std::numbers::pi_v<float>, true, false,
                                     "an angle from 0 to below pi"};

}  // namespace graft
