#pragma once

#include <bit>
#include <cstdint>

namespace graft {

/// IEEE 754 binary16, storage only: convert to float to compute. Rounds to nearest even.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};

/// The upper 16 bits of a float, storage only. Rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffU) > 0x7f800000U;
    bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40U
                                          : (u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

inline Half::Half(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000U;
  const std::uint32_t magnitude = u & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U;  // NaN
  } else if (magnitude >= 0x477ff000U) {
    result = 0x7c00U;  // 65520 and above round to infinity
  } else if (magnitude < 0x38800000U) {
    // Subnormal half: adding 0.5 leaves the rounded value in the low bits of the float.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    result = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  bits = static_cast<std::uint16_t>(sign | result);
}

inline Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  std::uint32_t result = 0;
  if (magnitude >= 0x7c00U) {
    result = 0x7f800000U | ((magnitude & 0x3ffU) << 13);
  } else if (magnitude >= 0x400U) {
    result = (magnitude << 13) + 0x38000000U;
  } else {
    result = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  }
  return std::bit_cast<float>(sign | result);
}

}  // namespace graft
