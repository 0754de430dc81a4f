#include "core/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace graft {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, KnownAnswersOfTheRandom123Library) {
  // kat_vectors, philox4x32 with 10 rounds.
  EXPECT_EQ(Philox(0, 0).block(0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(Philox(ones, ones).block(ones),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: digits of pi.
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformTakesTheWordsInOrder) {
  const Philox random(5, 9);
  const Words words = random.block(2);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(random.uniform(8 + i), static_cast<float>(words[i] >> 8) / 16777216.0F);
  }
}

TEST(Philox, UniformHasMeanAndVarianceOfTheUnitInterval) {
  const Philox random(1);
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.5, 0.003);  // the standard deviation of the mean is 0.0009
  EXPECT_NEAR(squares / kCount - mean * mean, 1.0 / 12, 0.001);
}

TEST(Philox, UniformDoubleFillsTheLowBits) {
  const Philox random(2);
  double mean = 0;
  std::set<double> distinct;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double value = random.uniform_double(i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    mean += value / 10000;
    distinct.insert(value);
  }
  EXPECT_EQ(distinct.size(), 10000U);
  EXPECT_NEAR(mean, 0.5, 0.01);
}

TEST(Philox, NormalHasMoments) {
  const Philox random(3);
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  double neighbours = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.normal(static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
    neighbours += value * random.normal(static_cast<std::uint64_t>(i) ^ 1);
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.015);
  EXPECT_NEAR(fourths / kCount, 3.0, 0.15);
  EXPECT_NEAR(neighbours / kCount, 0.0, 0.015);  // the two of a Box-Muller pair
}

TEST(Philox, StreamsAndSeedsDiffer) {
  EXPECT_EQ(Philox(1, 2).uniform(7), Philox(1, 2).uniform(7));
  EXPECT_NE(Philox(1, 2).block(7), Philox(1, 3).block(7));
  EXPECT_NE(Philox(1, 2).block(7), Philox(2, 2).block(7));
}

TEST(Philox, BelowStaysInRangeAndReachesAll) {
  const Philox random(4);
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++counts.at(random.below(i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
  EXPECT_EQ(random.below(3, 1), 0U);
}

std::vector<int> shuffled(int count, const Philox& random) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  shuffle(values.begin(), values.end(), random);
  return values;
}

TEST(Shuffle, IsAPermutationThatTheSeedFixes) {
  std::vector<int> values = shuffled(1000, Philox(7, 1));
  EXPECT_EQ(values, shuffled(1000, Philox(7, 1)));
  EXPECT_NE(values, shuffled(1000, Philox(7, 2)));
  std::vector<int> identity(1000);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_NE(values, identity);
  std::ranges::sort(values);
  EXPECT_EQ(values, identity);
}

TEST(Shuffle, EveryOrderOfThreeIsEquallyLikely) {
  std::vector<int> counts(27);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::vector<int> values = shuffled(3, Philox(seed));
    ++counts.at(static_cast<std::size_t>(values[0] * 9 + values[1] * 3 + values[2]));
  }
  EXPECT_EQ(std::ranges::count_if(counts, [](int count) { return count > 0; }), 6);
  for (const int count : counts) {
    if (count > 0) {
      EXPECT_NEAR(count, 1000, 150);
    }
  }
}

TEST(Shuffle, LeavesNothingAndOneAlone) {
  EXPECT_TRUE(shuffled(0, Philox(1)).empty());
  EXPECT_EQ(shuffled(1, Philox(1)), std::vector<int>{0});
}

}  // namespace
}  // namespace graft
