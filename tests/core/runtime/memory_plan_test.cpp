#include "core/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include "core/base/rng.h"

namespace graft {
namespace {

TEST(MemoryPlan, BuffersThatNeverMeetShareMemory) {
  const MemoryPlan plan = plan_memory({{100, 0, 1}, {100, 2, 3}, {64, 1, 2}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[2], 128U) << "aligned to 64, behind the larger ones";
  EXPECT_EQ(plan.arena_bytes, 192U);
  EXPECT_EQ(plan.lower_bound_bytes, 192U);
}

TEST(MemoryPlan, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).arena_bytes, 0U);
  EXPECT_EQ(plan_memory({{0, 0, 5}}).arena_bytes, 0U);
}

std::vector<Lifetime> random_lifetimes(std::uint64_t seed) {
  const Philox random(seed);
  std::vector<Lifetime> lifetimes;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto first = static_cast<int>(random.below(3 * i, 200));
    lifetimes.push_back({random.below(3 * i + 1, 5000), first,
                         first + static_cast<int>(random.below(3 * i + 2, 30))});
  }
  return lifetimes;
}

TEST(MemoryPlan, NoTwoLiveBuffersOverlap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Lifetime> lifetimes = random_lifetimes(seed);
    const MemoryPlan plan = plan_memory(lifetimes);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
    EXPECT_LE(plan.arena_bytes, plan.lower_bound_bytes * 5 / 4) << "worse than it was";
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0U);
      EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.arena_bytes);
      for (std::size_t b = a + 1; b < lifetimes.size(); ++b) {
        const bool meet =
            lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
        const bool overlap = plan.offsets[a] < plan.offsets[b] + lifetimes[b].bytes &&
                             plan.offsets[b] < plan.offsets[a] + lifetimes[a].bytes;
        EXPECT_FALSE(meet && overlap) << seed << ": " << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace graft
