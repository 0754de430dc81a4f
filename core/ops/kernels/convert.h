#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"

namespace graft {

template <class T>
inline constexpr bool kIsShort = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Rounds to odd: a second rounding to a shorter type then gives the same as one rounding would.
/// Source: Boldo and Melquiond, "When double rounding is odd", 2005.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(back) > std::abs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1U);
}

/// ONNX's rules for Cast. A float outside the integer's range, which ONNX leaves undefined, becomes
/// the nearest number in it, and NaN becomes 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsShort<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kIsShort<To>) {
    if constexpr (sizeof(From) <= 2 || std::is_same_v<From, float>) {
      return To(static_cast<float>(value));
    } else {
      return To(round_to_odd(static_cast<double>(value)));
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto kLeast = static_cast<From>(std::numeric_limits<To>::min());
    // 2^digits: the first number beyond the range, which every float type holds exactly.
    constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kBeyond = static_cast<From>(kHalf) * 2;
    if (!(value >= kLeast)) {
      return std::isnan(value) ? To{0} : std::numeric_limits<To>::min();
    }
    return value < kBeyond ? static_cast<To>(value) : std::numeric_limits<To>::max();
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace graft
