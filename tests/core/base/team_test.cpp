#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/team_internal.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

struct Tally {
  std::vector<std::atomic<int>> runs;
  std::vector<std::thread::id> threads;
  explicit Tally(int pieces)
      : runs(static_cast<std::size_t>(pieces)), threads(static_cast<std::size_t>(pieces)) {}
};

void count_piece(void* of, int piece) {
  auto& tally = *static_cast<Tally*>(of);
  const auto i = static_cast<std::size_t>(piece);
  ++tally.runs[i];
  tally.threads[i] = std::this_thread::get_id();
}

TEST(Team, RunsEachPieceOnceAndTheFirstOnItsLeader) {
  Team team;
  for (const int pieces : {1, 2, 7, 3, 16, 2}) {
    for (int round = 0; round < 200; ++round) {
      Tally tally(pieces);
      team.run(pieces, count_piece, &tally);
      for (const auto& runs : tally.runs) ASSERT_EQ(runs, 1);
      ASSERT_EQ(tally.threads[0], std::this_thread::get_id());
    }
  }
}

/// Each piece waits for the others: no thread can have taken two.
void meet(Team& team, int pieces) {
  struct Work {
    int pieces;
    std::atomic<int> here = 0;
  } work{pieces};
  const auto arrive = [](void* of, int) {
    auto& w = *static_cast<Work*>(of);
    ++w.here;
    while (w.here != w.pieces) std::this_thread::yield();
  };
  team.run(pieces, arrive, &work);
  EXPECT_EQ(work.here, pieces);
}

TEST(Team, WakesWorkersThatSleep) {
  Team team;
  for (int round = 0; round < 3; ++round) {
    meet(team, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(Team, ALeaderThatWaitsLongIsWokenByItsLastWorker) {
  Team team;
  std::atomic<int> done = 0;
  struct Work {
    std::atomic<int>& done;
    std::atomic<bool> is_taken = false;
  } work{done};
  const auto slow = [](void* of, int piece) {
    auto& w = *static_cast<Work*>(of);
    if (piece == 0) {
      while (!w.is_taken) std::this_thread::yield();
      return;
    }
    w.is_taken = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++w.done;
  };
  team.run(2, slow, &work);
  EXPECT_EQ(done, 1);
}

TEST(Team, PiecesMeetAtBarriers) {
  Team team;
  constexpr int kPieces = 4;
  constexpr int kRounds = 50;
  struct Work {
    std::atomic<int> arrived = 0;
    std::atomic<int> wrong = 0;
  } work;
  const auto meet = [](void* of, int) {
    auto& w = *static_cast<Work*>(of);
    for (int round = 1; round <= kRounds; ++round) {
      ++w.arrived;
      Team::barrier();
      if (w.arrived < round * kPieces) ++w.wrong;
      Team::barrier();
    }
  };
  team.run(kPieces, meet, &work);
  EXPECT_EQ(work.wrong, 0);
  EXPECT_EQ(work.arrived, kPieces * kRounds);
}

TEST(Team, SaysWhichPieceRuns) {
  EXPECT_FALSE(Team::is_within());
  Team team;
  std::atomic<int> wrong = 0;
  const auto look = [](void* of, int piece) {
    const bool is_right = Team::is_within() && Team::piece() == piece && Team::pieces() == 3;
    if (!is_right) ++*static_cast<std::atomic<int>*>(of);
  };
  team.run(3, look, &wrong);
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(Team::is_within());
  EXPECT_EQ(Team::pieces(), 1);
}

TEST(Team, EachThreadHasItsOwn) {
  Team* other = nullptr;
  std::thread([&] { other = &Team::own(); }).join();
  EXPECT_EQ(&Team::own(), &Team::own());
  EXPECT_NE(&Team::own(), other);
}

TEST(Team, AChildOfAForkStartsWorkersOfItsOwn) {
  const testing::Threads three(3);
  std::atomic<int> sum = 0;
  const auto add_up = [&] {
    sum = 0;
    parallel_for(30, 1, [&](std::int64_t first, std::int64_t last) {
      sum += static_cast<int>(last - first);
    });
  };
  add_up();
  // One that still starts may hold a lock of the address sanitizer, for which the child would wait.
  meet(Team::own(), 3);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a loop that waits for the parent's workers would wait for ever
    std::thread(add_up).join();
    add_up();
    _exit(sum == 30 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  add_up();
  EXPECT_EQ(sum, 30);
}

}  // namespace
}  // namespace graft
