#include "core/base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

using testing::Threads;

std::vector<std::pair<std::int64_t, std::int64_t>> pieces_of(std::int64_t count,
                                                             std::int64_t grain) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
  std::mutex mutex;
  parallel_for(count, grain, [&](std::int64_t first, std::int64_t last) {
    const std::scoped_lock lock(mutex);
    pieces.emplace_back(first, last);
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(ParallelFor, CoversEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 64, 1001}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& times : seen) ASSERT_EQ(times, 1);
    }
  }
}

TEST(ParallelFor, SplitsEvenlyAndOnlyByCountGrainAndThreads) {
  const Threads scope(3);
  const std::vector<std::pair<std::int64_t, std::int64_t>> wanted{{0, 4}, {4, 7}, {7, 10}};
  EXPECT_EQ(pieces_of(10, 1), wanted);
  EXPECT_EQ(pieces_of(10, 5).size(), 2U);
  EXPECT_EQ(pieces_of(9, 5).size(), 1U);
  EXPECT_EQ(pieces_of(3, 0).size(), 3U);
}

TEST(ParallelFor, CountsNearTheLimitDoNotOverflow) {
  const Threads scope(4);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto pieces = pieces_of(most, 1);
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(pieces.front().first, 0);
  EXPECT_EQ(pieces.back().second, most);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(pieces[i].first, pieces[i - 1].second);
}

TEST(ParallelFor, NestedLoopsRunOnTheirThread) {
  const Threads scope(4);
  std::vector<std::atomic<int>> seen(8 * 16);
  parallel_for(8, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::thread::id outer = std::this_thread::get_id();
      parallel_for(16, 1, [&](std::int64_t from, std::int64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        for (std::int64_t j = from; j < to; ++j) ++seen[static_cast<std::size_t>(i * 16 + j)];
      });
    }
  });
  for (const auto& times : seen) EXPECT_EQ(times, 1);
}

TEST(ThreadCount, BelowOneIsRefused) {
  EXPECT_THROW(set_thread_count(0), Error);
  EXPECT_GE(thread_count(), 1);
}

#if defined(__SSE__) || defined(__aarch64__)
bool flushes() {
  volatile float tiny = std::numeric_limits<float>::min();
  return tiny / 2.0F == 0.0F;
}

bool each_piece_flushes() {
  std::atomic<int> count = 0;
  parallel_for(4, 1, [&](std::int64_t, std::int64_t) { count += flushes() ? 1 : 0; });
  return count == 4;
}

TEST(DenormalsFlushed, HoldsInItsScopeOnTheThreadsOfEveryPool) {
  const Threads scope(4);
  for (int round = 0; round < 2; ++round) {
    std::thread([] {  // a thread that opens a parallel region has a pool of its own
      EXPECT_FALSE(flushes());
      {
        parallel_for(4, 1, [](std::int64_t, std::int64_t) {});  // starts the pool before
        const DenormalsFlushed flushed;
        EXPECT_TRUE(flushes());
        EXPECT_TRUE(each_piece_flushes());
      }
      EXPECT_FALSE(flushes());
    })
        .join();
  }
}
#endif

}  // namespace
}  // namespace graft
