#include "core/base/parallel.h"

#include <atomic>

#include "core/base/error.h"
#include "core/base/float_control_internal.h"
#include "core/base/processors.h"
#include "core/base/team_internal.h"

namespace graft {
namespace {

std::atomic<int>& count_setting() {
  static std::atomic<int> count = processors_of_process();
  return count;
}

}  // namespace

int thread_count() {
  return count_setting().load(std::memory_order_relaxed);
}

void set_thread_count(int count) {
  if (count < 1) fail(ErrorKind::argument, "thread count ", count, " is below 1");
  count_setting().store(count, std::memory_order_relaxed);
}

DenormalsFlushed::DenormalsFlushed() : saved_(float_control()) {
  set_float_control(saved_ | kFlushDenormals);
}

DenormalsFlushed::~DenormalsFlushed() {
  set_float_control(saved_);
}

void detail::parallel_for(std::int64_t count, std::int64_t grain, ParallelBody body,
                          void* context) {
  if (count <= 0) return;
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const int pieces = static_cast<int>(std::min<std::int64_t>(most, thread_count()));
  if (pieces == 1 || Team::is_within()) {
    body(context, 0, count);
    return;
  }
  struct Loop {
    ParallelBody body;
    void* context;
    std::int64_t share;
    std::int64_t longer;  // so many pieces have one more
  };
  Loop loop{body, context, count / pieces, count % pieces};
  Team::own().run(
      pieces,
      [](void* of, int piece) {
        const Loop& l = *static_cast<const Loop*>(of);
        const std::int64_t first = piece * l.share + std::min<std::int64_t>(piece, l.longer);
        l.body(l.context, first, first + l.share + (piece < l.longer ? 1 : 0));
      },
      &loop);
}

}  // namespace graft
