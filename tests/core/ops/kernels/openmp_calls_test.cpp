#include "core/ops/kernels/openmp_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "tests/core/threads.h"

// As oneDNN's library calls them.
extern "C" {
int gft_get_max_threads();
int gft_in_parallel();
int gft_get_num_threads();
int gft_get_thread_num();
void gft_set_num_threads(int count);
void GRFT_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
void GRFT_parallel_start(void (*fn)(void*), void* data, unsigned threads);
void GRFT_parallel_end();
void GRFT_barrier();
bool GRFT_loop_static_start(long start, long end, long increment, long chunk, long* first,
                            long* last);
bool GRFT_loop_static_next(long* first, long* last);
}

namespace graft {
namespace {

/// A parallel region of so many threads, as GCC writes it.
template <class Body>
void region(unsigned threads, Body body) {
  const auto run = [](void* of) { (*static_cast<Body*>(of))(); };
  GRFT_parallel(run, &body, threads, 0);
}

/// As GCC before 4.9 writes it.
template <class Body>
void region_in_steps(unsigned threads, Body body) {
  const auto run = [](void* of) { (*static_cast<Body*>(of))(); };
  GRFT_parallel_start(run, &body, threads);
  run(&body);
  GRFT_parallel_end();
}

TEST(OpenmpCalls, EachThreadOfARegionRunsOnceAndKnowsItsNumber) {
  EXPECT_EQ(gft_in_parallel(), 0);
  EXPECT_EQ(gft_get_num_threads(), 1);
  std::array<std::atomic<int>, 3> seen{};
  std::atomic<int> wrong = 0;
  const auto body = [&] {
    ++seen.at(static_cast<std::size_t>(gft_get_thread_num()));
    if (gft_get_num_threads() != 3 || gft_in_parallel() == 0) ++wrong;
  };
  for (int round = 0; round < 100; ++round) {
    region(3, body);
    region_in_steps(3, body);
  }
  for (const auto& times : seen) EXPECT_EQ(times, 200);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(gft_in_parallel(), 0);
}

TEST(OpenmpCalls, BarriersHoldEveryThread) {
  std::atomic<int> arrived = 0;
  std::atomic<int> wrong = 0;
  region(4, [&] {
    ++arrived;
    GRFT_barrier();
    if (arrived != 4) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(OpenmpCalls, ARegionWithinAnotherOrWithinALoopIsItsThreadAlone) {
  std::atomic<int> inner = 0;
  std::atomic<int> wrong = 0;
  const auto nested = [&] {
    region(2, [&] {
      ++inner;
      if (gft_get_num_threads() != 1 || gft_get_thread_num() != 0) ++wrong;
      GRFT_barrier();
    });
    region_in_steps(2, [&] { ++inner; });
  };
  region(2, nested);
  EXPECT_EQ(inner, 4);
  {
    const testing::Threads two(2);
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) { nested(); });
  }
  EXPECT_EQ(inner, 8);
  EXPECT_EQ(wrong, 0);
}

TEST(OpenmpCalls, OneThreadIsNoParallelRegion) {
  region(1, [] { EXPECT_EQ(gft_in_parallel(), 0); });
}

TEST(OpenmpCalls, PrimitivesAreMadeForTheThreadsOfGraftUnlessToldOtherwise) {
  EXPECT_EQ(gft_get_max_threads(), thread_count());
  {
    const OnednnThreads one(1);
    EXPECT_EQ(gft_get_max_threads(), 1);
  }
  EXPECT_EQ(gft_get_max_threads(), thread_count());
}

TEST(OpenmpCalls, RegionsHaveTheThreadsThatWereSetUnlessTheySayHowMany) {
  gft_set_num_threads(3);
  EXPECT_EQ(gft_get_max_threads(), 3);
  std::atomic<int> seen = 0;
  region(0, [&] { ++seen; });
  EXPECT_EQ(seen, 3);
  region(2, [&] { ++seen; });
  EXPECT_EQ(seen, 5);
  gft_set_num_threads(0);
  EXPECT_EQ(gft_get_max_threads(), thread_count());
}

using Stretches = std::vector<std::pair<long, long>>;

/// What each thread of three gets of a static loop.
std::array<Stretches, 3> shares(long start, long end, long increment, long chunk) {
  std::array<Stretches, 3> all;
  region(3, [&] {
    Stretches& mine = all.at(static_cast<std::size_t>(gft_get_thread_num()));
    long first = 0;
    long last = 0;
    bool is_more = GRFT_loop_static_start(start, end, increment, chunk, &first, &last);
    for (; is_more; is_more = GRFT_loop_static_next(&first, &last)) mine.emplace_back(first, last);
  });
  return all;
}

TEST(OpenmpCalls, StaticLoopsAreSharedAsLibgompSharesThem) {
  using All = std::array<Stretches, 3>;
  EXPECT_EQ(shares(0, 10, 1, 0), (All{{{{0, 4}}, {{4, 7}}, {{7, 10}}}}));
  EXPECT_EQ(shares(0, 2, 1, 0), (All{{{{0, 1}}, {{1, 2}}, {}}}));
  EXPECT_EQ(shares(5, 5, 1, 0), (All{}));
  EXPECT_EQ(shares(9, -1, -2, 0), (All{{{{9, 5}}, {{5, 1}}, {{1, -1}}}}));
  EXPECT_EQ(shares(0, 10, 1, 2), (All{{{{0, 2}, {6, 8}}, {{2, 4}, {8, 10}}, {{4, 6}}}}));
  EXPECT_EQ(shares(10, 0, -1, 4), (All{{{{10, 6}}, {{6, 2}}, {{2, 0}}}}));
}

}  // namespace
}  // namespace graft
