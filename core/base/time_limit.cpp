#include "core/base/time_limit.h"

#include <cstdint>
#include <ctime>

#include "core/base/error.h"
#include "core/base/limits.h"

namespace graft {
namespace {

/// Asking for the time takes longer than most nodes do.
constexpr int kCallsBetween = 64;

struct Timed {
  int depth = 0;
  int calls = 0;
  double start = 0.0;
};

thread_local Timed timed;

/// Processor time of the thread, in seconds: what others do on the machine does not count.
double thread_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TimeLimit::TimeLimit() {
  if (timed.depth++ > 0) return;
  timed.calls = 0;
  timed.start = thread_seconds();
}

TimeLimit::~TimeLimit() {
  --timed.depth;
}

void check_time() {
  if (timed.depth == 0 || ++timed.calls % kCallsBetween != 0) return;
  const std::int64_t most = limits().import_seconds;
  const double taken = thread_seconds() - timed.start;
  if (taken <= static_cast<double>(most)) return;
  fail(ErrorKind::model, "reading and rewriting the model has taken ", taken,
       " s of processor time; ", limit_text("seconds", most));
}

}  // namespace graft
