#include "core/runtime/occupancy.h"

#include <gtest/gtest.h>

#include "core/base/rng.h"

namespace graft {
namespace {

TEST(Occupancy, FindsTheLowestHoleThatIsLargeEnough) {
  Occupancy occupancy(4);
  EXPECT_EQ(occupancy.lowest_fit(0, 3, 100), 0U);
  occupancy.take(0, 3, 0, 10);
  occupancy.take(1, 2, 30, 10);
  EXPECT_EQ(occupancy.lowest_fit(0, 3, 20), 10U) << "between the two";
  EXPECT_EQ(occupancy.lowest_fit(0, 3, 21), 40U) << "behind both";
  EXPECT_EQ(occupancy.lowest_fit(3, 3, 21), 10U) << "the second is not there yet";
  occupancy.take(0, 0, 10, 20);
  EXPECT_EQ(occupancy.lowest_fit(0, 1, 1), 40U) << "what touches leaves no hole";
}

/// The same by a look at every byte of every step.
class Plain {
 public:
  std::size_t lowest_fit(int first, int last, std::size_t bytes) const {
    std::size_t offset = 0;
    for (std::size_t byte = 0; byte < offset + bytes; ++byte) {
      if (is_taken(first, last, byte)) offset = byte + 1;
    }
    return offset;
  }
  void take(int first, int last, std::size_t offset, std::size_t bytes) {
    for (int step = first; step <= last; ++step) {
      for (std::size_t byte = offset; byte < offset + bytes; ++byte) at(step, byte) = true;
    }
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  bool is_taken(int first, int last, std::size_t byte) const {
    for (int step = first; step <= last; ++step) {
      if (taken_.at(static_cast<std::size_t>(step) * kBytes + byte)) return true;
    }
    return false;
  }
  std::vector<bool>::reference at(int step, std::size_t byte) {
    return taken_.at(static_cast<std::size_t>(step) * kBytes + byte);
  }
  std::vector<bool> taken_ = std::vector<bool>(32 * kBytes);
};

TEST(Occupancy, AgreesWithALookAtEveryByte) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Philox random(seed);
    const int steps = 1 + static_cast<int>(random.below(1000, 31));
    Occupancy occupancy(steps);
    Plain plain;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const auto draw = [&](std::uint64_t which, int limit) {
        return static_cast<int>(random.below(4 * i + which, static_cast<std::uint64_t>(limit)));
      };
      const int first = draw(0, steps);
      const int last = first + draw(1, steps - first);
      const auto bytes = static_cast<std::size_t>(1 + draw(2, 20));
      const std::size_t offset = occupancy.lowest_fit(first, last, bytes);
      ASSERT_EQ(offset, plain.lowest_fit(first, last, bytes)) << seed << ", " << i;
      const std::size_t gap = draw(3, 4) == 0 ? 5 : 0;  // leaves holes
      occupancy.take(first, last, offset + gap, bytes);
      plain.take(first, last, offset + gap, bytes);
    }
  }
}

}  // namespace
}  // namespace graft
