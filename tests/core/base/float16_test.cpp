#include "core/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace graft {
namespace {

std::uint16_t half(float value) {
  return Half(value).bits;
}
std::uint16_t bfloat(float value) {
  return BFloat16(value).bits;
}
template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// The number that IEEE 754 gives to 16 bits of binary16, by its definition.
double half_by_definition(int bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, All65536ValuesReadRightAndComeBack) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(from_bits<Half>(bits));
    if ((bits & 0x7c00) != 0x7c00) {
      ASSERT_EQ(static_cast<double>(value), half_by_definition(bits)) << bits;
    } else if ((bits & 0x3ff) == 0) {
      ASSERT_TRUE(std::isinf(value)) << bits;
    } else {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      continue;
    }
    ASSERT_EQ(half(value), bits);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(half(1.0F), 0x3c00);
  EXPECT_EQ(half(1.0F + 0x1p-11F), 0x3c00);             // a tie, down to even
  EXPECT_EQ(half(1.0F + 0x1p-10F + 0x1p-11F), 0x3c02);  // a tie, up to even
  EXPECT_EQ(half(1.0F + 0x1p-11F + 0x1p-20F), 0x3c01);
  EXPECT_EQ(half(0.1F), 0x2e66);
  EXPECT_EQ(half(-2.0F), 0xc000);
  EXPECT_EQ(half(-0.0F), 0x8000);
}

TEST(Half, RoundsAtTheEndsOfItsRange) {
  EXPECT_EQ(half(65504.0F), 0x7bff);
  EXPECT_EQ(half(65519.0F), 0x7bff);
  EXPECT_EQ(half(65520.0F), 0x7c00);
  EXPECT_EQ(half(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(half(0x1p-24F), 0x0001);
  EXPECT_EQ(half(0x1p-25F), 0x0000);  // half of the least subnormal: even is zero
  EXPECT_EQ(half(0x1p-25F + 0x1p-40F), 0x0001);
  EXPECT_EQ(half(0x1.8p-24F), 0x0002);           // a tie among subnormals
  EXPECT_EQ(half(0x1p-14F - 0x1p-26F), 0x0400);  // rounds up into the normal numbers
  EXPECT_EQ(half(std::numeric_limits<float>::denorm_min()), 0x0000);
}

TEST(Half, EveryMidpointGoesToTheEvenNeighbour) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<float>(from_bits<Half>(bits));
    const auto high = static_cast<float>(from_bits<Half>(bits + 1));
    ASSERT_EQ(half((low + high) / 2), (bits & 1) == 0 ? bits : bits + 1);
    ASSERT_EQ(half(std::nextafter((low + high) / 2, 0.0F)), bits);
    ASSERT_EQ(half(std::nextafter((low + high) / 2, 1e9F)), bits + 1);
  }
}

TEST(BFloat16, All65536ValuesComeBack) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(from_bits<BFloat16>(bits));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(BFloat16(value)))) << bits;
    } else {
      ASSERT_EQ(bfloat(value), bits);
    }
  }
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(bfloat(1.0F), 0x3f80);
  EXPECT_EQ(bfloat(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(bfloat(1.0F + 0x1p-7F + 0x1p-8F), 0x3f82);
  EXPECT_EQ(bfloat(std::numeric_limits<float>::max()), 0x7f80);
  // Its payload lies in the lower half only: plain truncation would make it infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace graft
