// What oneDNN's OpenMP build asks of libgomp, on Graft's threads. Two pools in one program would
// take the processors from each other, and libgomp's threads spin for milliseconds after each loop,
// which costs a busy machine dearly and can be changed from the environment alone.
//
// cmake/onednn_threads.py makes the copy of oneDNN that calls these names: GRFT_x for GOMP_x, gft_x
// for omp_x. Any other OpenMP in the program goes on to call libgomp.
//
// Calls as GCC makes them: parallel lets all threads run fn(data), the caller among them. Before
// GCC 4.9 that was three steps: parallel_start lets the others run it, the caller runs it too, then
// calls parallel_end. A loop_static call asks for iterations of this thread's share, one stretch
// after the other.
#include "core/ops/kernels/openmp_calls.h"

#include <algorithm>
#include <atomic>

#include "core/base/float_control_internal.h"
#include "core/base/parallel.h"
#include "core/base/team_internal.h"

#define GRAFT_FOR_ONEDNN extern "C" __attribute__((visibility("default")))

namespace graft {
namespace {

thread_local int made_for = 0;      // OnednnThreads, set_num_threads; 0 without
thread_local int nested_teams = 0;  // a team within a team is its caller alone

struct Region {
  void (*run)(void*);
  void* data;
  bool is_watched = false;
  std::atomic<bool> met_nan = false;  // of the other threads
};
thread_local Region region;  // of the team that this thread leads

void run_region(void* of, int) {
  Region& mine = *static_cast<Region*>(of);
  if (!mine.is_watched) return mine.run(mine.data);
  const bool was_raised = nan_flag();  // a leader that takes another's piece has run its own
  set_nan_flag(false);
  mine.run(mine.data);
  if (nan_flag()) mine.met_nan.store(true, std::memory_order_relaxed);
  set_nan_flag(was_raised);
}

/// The share of a thread of a static loop: `stretch` iterations every `stride`, from `next` on.
struct Share {
  long next;
  long end;
  long stretch;
  long stride;
  long increment;
};
thread_local Share share;

bool take_stretch(long* first, long* last) {
  const bool is_up = share.increment > 0;
  if (is_up ? share.next >= share.end : share.next <= share.end) return false;
  *first = share.next;
  const long behind = share.next + share.stretch;
  *last = is_up ? std::min(behind, share.end) : std::max(behind, share.end);
  share.next += share.stride;
  return true;
}

}  // namespace

OnednnThreads::OnednnThreads(int count) : saved_(made_for) {
  made_for = count;
}

OnednnThreads::~OnednnThreads() {
  made_for = saved_;
}

bool InvalidFlagWatch::is_possible() {
  return kFlagsNan;
}

InvalidFlagWatch::InvalidFlagWatch() {
  region.met_nan = false;
  region.is_watched = true;
  set_nan_flag(false);
}

InvalidFlagWatch::~InvalidFlagWatch() {
  region.is_watched = false;
}

bool InvalidFlagWatch::met_nan() const {
  return nan_flag() || region.met_nan;
}

GRAFT_FOR_ONEDNN int gft_get_max_threads() {
  return made_for != 0 ? made_for : thread_count();
}

GRAFT_FOR_ONEDNN void gft_set_num_threads(int count) {
  made_for = std::max(0, count);
}

GRAFT_FOR_ONEDNN int gft_in_parallel() {
  return Team::is_within() && Team::pieces() > 1 ? 1 : 0;
}

GRAFT_FOR_ONEDNN int gft_get_num_threads() {
  return nested_teams == 0 ? Team::pieces() : 1;
}

GRAFT_FOR_ONEDNN int gft_get_thread_num() {
  return nested_teams == 0 ? Team::piece() : 0;
}

GRAFT_FOR_ONEDNN void GRFT_parallel_start(void (*fn)(void*), void* data, unsigned threads) {
  if (Team::is_within()) {
    ++nested_teams;
    return;
  }
  region.run = fn;
  region.data = data;
  Team::own().open(threads == 0 ? gft_get_max_threads() : static_cast<int>(threads), run_region,
                   &region);
}

GRAFT_FOR_ONEDNN void GRFT_parallel_end() {
  if (nested_teams > 0) {
    --nested_teams;
  } else {
    Team::own().close();
  }
}

GRAFT_FOR_ONEDNN void GRFT_parallel(void (*fn)(void*), void* data, unsigned threads,
                                    unsigned /*flags*/) {
  GRFT_parallel_start(fn, data, threads);
  fn(data);
  GRFT_parallel_end();
}

GRAFT_FOR_ONEDNN void GRFT_barrier() {
  if (nested_teams == 0) Team::barrier();
}

GRAFT_FOR_ONEDNN bool GRFT_loop_static_start(long start, long end, long increment, long chunk,
                                             long* first, long* last) {
  const long threads = gft_get_num_threads();
  const long thread = gft_get_thread_num();
  if (chunk != 0) {
    share = {start + thread * chunk * increment, end, chunk * increment,
             threads * chunk * increment, increment};
    return take_stretch(first, last);
  }
  const long count = std::max(0L, (end - start + increment + (increment > 0 ? -1 : 1)) / increment);
  const long each = count / threads;
  const long longer = count % threads;
  const long from = thread * each + std::min(thread, longer);
  const long to = from + each + (thread < longer ? 1 : 0);
  share = {start + from * increment, start + to * increment, (to - from) * increment,
           (to - from) * increment, increment};
  return take_stretch(first, last);
}

GRAFT_FOR_ONEDNN bool GRFT_loop_static_next(long* first, long* last) {
  return take_stretch(first, last);
}

GRAFT_FOR_ONEDNN void GRFT_loop_end_nowait() {}

}  // namespace graft
