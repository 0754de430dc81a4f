#include "core/ops/kernels/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace graft {
namespace {

std::vector<std::uint16_t> rounded(const std::vector<float>& x, const Philox& random,
                                   std::int64_t first = 0) {
  std::vector<BFloat16> y(x.size());
  const StochasticRounding round(random);
  round(x.data(), first, static_cast<std::int64_t>(x.size()), y.data());
  std::vector<std::uint16_t> bits;
  for (const BFloat16 value : y) bits.push_back(value.bits);
  return bits;
}

/// How many of `count` equal numbers become the bf16 number of these bits; all others become the
/// next one away from zero.
int count_of(float value, int count, std::uint16_t bits) {
  int found = 0;
  const std::vector<float> x(static_cast<std::size_t>(count), value);
  for (const std::uint16_t is : rounded(x, Philox(3, 1))) {
    if (is != bits) {
      EXPECT_EQ(is, bits + 1) << value;
    }
    found += is == bits ? 1 : 0;
  }
  return found;
}

TEST(StochasticRounding, GoesUpAsOftenAsTheNumberIsNearTheUpperOne) {
  constexpr int kCount = 1 << 16;
  constexpr double kFourDeviations = 4 * 128.0;  // at most: of kCount coins
  // bf16 has 1 (0x3f80) and 1 + 2^-7 (0x3f81), nothing in between.
  EXPECT_NEAR(count_of(1.0F + 0x1p-8F, kCount, 0x3f80), kCount / 2, kFourDeviations);
  EXPECT_NEAR(count_of(1.0F + 0x1p-9F, kCount, 0x3f80), kCount * 3 / 4, kFourDeviations);
  EXPECT_NEAR(count_of(-1.0F - 0x1p-9F, kCount, 0xbf80), kCount * 3 / 4, kFourDeviations);
  // A tenth of the way between two denormals.
  const float tenth = std::bit_cast<float>((std::uint32_t{5} << 16) + 6554);
  EXPECT_NEAR(count_of(tenth, kCount, 5), kCount * 0.9, kFourDeviations);
}

TEST(StochasticRounding, KeepsWhatBf16Holds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float least = std::bit_cast<float>(std::uint32_t{1} << 16);  // the least denormal of bf16
  std::vector<float> x;
  for (int i = 0; i < 100; ++i) {
    for (const float value : {0.0F, 1.0F, 3.140625F, least, infinity}) {
      x.push_back(value);
      x.push_back(-value);
    }
  }
  const std::vector<std::uint16_t> y = rounded(x, Philox(1, 2));
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], std::bit_cast<std::uint32_t>(x[i]) >> 16) << x[i];
  }
}

TEST(StochasticRounding, NanStaysNanWhateverItsBits) {
  std::vector<float> x;
  for (const std::uint32_t bits : {0x7fc00000U, 0x7f800001U, 0x7fffffffU, 0xffffffffU}) {
    x.insert(x.end(), 100, std::bit_cast<float>(bits));
  }
  for (const std::uint16_t bits : rounded(x, Philox(1, 2))) {
    EXPECT_GT(bits & 0x7fffU, 0x7f80U);
  }
}

TEST(StochasticRounding, BitsFollowFromThePlaceAlone) {
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const std::int64_t place = (std::int64_t{1} << 33) - 400;  // where counters begin anew
  const Philox random(7, 1);
  const std::vector<std::uint16_t> whole = rounded(x, random, place);
  std::vector<std::uint16_t> pieces;
  for (std::size_t at = 0, size = 1; at < x.size(); at += size, size = size * 2 + 1) {
    const std::size_t end = std::min(x.size(), at + size);
    const std::vector<float> piece(x.begin() + static_cast<std::ptrdiff_t>(at),
                                   x.begin() + static_cast<std::ptrdiff_t>(end));
    const auto bits = rounded(piece, random, place + static_cast<std::int64_t>(at));
    pieces.insert(pieces.end(), bits.begin(), bits.end());
  }
  EXPECT_EQ(whole, pieces);
  EXPECT_NE(whole, rounded(x, random, place + 1));
  EXPECT_NE(whole, rounded(x, Philox(8, 1), place)) << "another step";
  EXPECT_NE(whole, rounded(x, Philox(7, 2), place)) << "another state";
}

/// Neighbours, the same element a step later and the other state must not be rounded alike: of
/// numbers half-way, as many pairs agree as differ.
TEST(StochasticRounding, BitsAreNotAlike) {
  constexpr std::size_t kCount = 1 << 16;
  const std::vector<float> x(kCount, 1.0F + 0x1p-8F);
  const auto base = rounded(x, Philox(7, 1));
  const auto expect_apart = [&](const std::vector<std::uint16_t>& other, std::size_t shift) {
    int alike = 0;
    for (std::size_t i = shift; i < kCount; ++i) alike += base[i - shift] == other[i] ? 1 : 0;
    EXPECT_NEAR(alike, (kCount - shift) / 2.0, 4 * 128.0) << "shift " << shift;
  };
  for (const std::size_t shift : {1, 2, 16, 1024}) expect_apart(base, shift);
  for (const std::size_t shift : {0, 1, 16}) {
    expect_apart(rounded(x, Philox(8, 1)), shift);
    expect_apart(rounded(x, Philox(7, 2)), shift);
  }
}

}  // namespace
}  // namespace graft
