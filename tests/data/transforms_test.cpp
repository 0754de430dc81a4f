#include "data/transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

TEST(Normalize, SubtractsAndDividesChannelByChannel) {
  std::vector<float> pixels{1, 2, 3, 4};
  SampleRandom random(1, 0);
  Normalize{{1, 2}, {0.5F, 2}}(image_view(pixels, Shape{2, 1, 2}), random);
  EXPECT_THAT(pixels, ElementsAre(0, 2, 0.5F, 1));
  Normalize{{1}, {0.5F}}(image_view(pixels, Shape{2, 1, 2}), random);
  EXPECT_THAT(pixels, ElementsAre(-2, 2, -1, 0));
  Normalize{{0, 0, 0, 1}, {1, 1, 1, 1}}(image_view(pixels, Shape{4}), random);
  EXPECT_THAT(pixels, ElementsAre(-2, 2, -1, -1));
}

TEST(Normalize, RefusesNumbersThatDoNotFit) {
  std::vector<float> pixels(6);
  SampleRandom random(1, 0);
  const ImageView image = image_view(pixels, Shape{3, 1, 2});
  expect_error(ErrorKind::argument, "2 means and 2 deviations for 3 channels", [&] {
    Normalize{{0, 0}, {1, 1}}(image, random);
  });
  expect_error(ErrorKind::argument, "3 means and 1 deviations", [&] {
    Normalize{{0, 0, 0}, {1}}(image, random);
  });
  expect_error(ErrorKind::argument, "deviation 0", [&] { Normalize{{0}, {0}}(image, random); });
  expect_error(ErrorKind::argument, "deviation inf", [&] {
    Normalize{{0}, {HUGE_VALF}}(image, random);
  });
  expect_error(ErrorKind::argument, "mean nan", [&] {
    Normalize{{std::nanf("")}, {1}}(image, random);
  });
}

/// What a crop at (dy, dx) out of the zero-padded image must give.
std::vector<float> shifted(const std::vector<float>& pixels, int channels, int height, int width,
                           int dy, int dx) {
  std::vector<float> result;
  for (int c = 0; c < channels; ++c) {
    for (int y = dy; y < height + dy; ++y) {
      for (int x = dx; x < width + dx; ++x) {
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        result.push_back(inside ? pixels[static_cast<std::size_t>((c * height + y) * width + x)]
                                : 0.0F);
      }
    }
  }
  return result;
}

TEST(RandomCrop, ShiftsByEveryOffsetAndFillsWithZeros) {
  std::vector<float> original(2 * 3 * 4);
  std::iota(original.begin(), original.end(), 1.0F);
  std::set<std::vector<float>> wanted;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) wanted.insert(shifted(original, 2, 3, 4, dy, dx));
  }
  ASSERT_EQ(wanted.size(), 25);
  std::set<std::vector<float>> found;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    std::vector<float> pixels = original;
    SampleRandom random(7, sample);
    RandomCrop{2}(image_view(pixels, Shape{2, 3, 4}), random);
    found.insert(pixels);
  }
  EXPECT_EQ(found, wanted);
}

TEST(RandomCrop, RefusesPaddingOfTheImagesSize) {
  std::vector<float> pixels(12);
  SampleRandom random(1, 0);
  expect_error(ErrorKind::argument, "padding 3 for an image of 3 x 4, wanted 0 to 2", [&] {
    RandomCrop{3}(image_view(pixels, Shape{1, 3, 4}), random);
  });
  expect_error(ErrorKind::argument, "padding -1", [&] {
    RandomCrop{-1}(image_view(pixels, Shape{1, 3, 4}), random);
  });
}

TEST(RandomHorizontalFlip, MirrorsRowsWithItsProbability) {
  std::vector<float> pixels{1, 2, 3, 4, 5, 6};
  SampleRandom random(1, 0);
  RandomHorizontalFlip{1.0}(image_view(pixels, Shape{1, 2, 3}), random);
  EXPECT_THAT(pixels, ElementsAre(3, 2, 1, 6, 5, 4));
  RandomHorizontalFlip{0.0}(image_view(pixels, Shape{1, 2, 3}), random);
  EXPECT_THAT(pixels, ElementsAre(3, 2, 1, 6, 5, 4));
  int flipped = 0;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    std::vector<float> pair{0, 1};
    SampleRandom draws(3, sample);
    RandomHorizontalFlip{0.25}(image_view(pair, Shape{1, 1, 2}), draws);
    flipped += pair[0] == 1.0F ? 1 : 0;
  }
  EXPECT_NEAR(flipped, 250, 42);  // three deviations
}

TEST(RandomHorizontalFlip, RefusesWhatIsNoProbability) {
  std::vector<float> pixels(2);
  SampleRandom random(1, 0);
  const ImageView image = image_view(pixels, Shape{1, 1, 2});
  for (const double probability : {50.0, -1.0, std::nan("")}) {
    expect_error(ErrorKind::argument, "wanted 0 to 1",
                 [&] { RandomHorizontalFlip{probability}(image, random); });
  }
}

TEST(SampleRandom, DependsOnSeedAndStreamOnly) {
  SampleRandom a(1, 2);
  SampleRandom b(1, 2);
  SampleRandom c(1, 3);
  const auto first = a.below(1U << 30);
  EXPECT_EQ(first, b.below(1U << 30));
  EXPECT_NE(first, c.below(1U << 30));
  EXPECT_NE(first, a.below(1U << 30));
  const double value = a.uniform();
  EXPECT_TRUE(value >= 0.0 && value < 1.0);
}

TEST(ImageView, RefusesOtherRanks) {
  expect_error(ErrorKind::shape, "a sample is [2,2], wanted [C,H,W] or [F]", [] {
    image_view({}, Shape{2, 2});
  });
}

}  // namespace
}  // namespace graft
