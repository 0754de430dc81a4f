#include "core/base/parallel.h"

#include <omp.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "core/base/error.h"

namespace graft {
namespace {

int& count_setting() {
  static int count = omp_get_num_procs();
  return count;
}

}  // namespace

int thread_count() {
  return count_setting();
}

void set_thread_count(int count) {
  if (count < 1) fail(ErrorKind::argument, "thread count ", count, " is below 1");
  count_setting() = count;
  omp_set_num_threads(count);
}

void flush_denormals_on_this_thread() {
#if defined(__SSE__)
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  _mm_setcsr(_mm_getcsr() | kFlushToZeroAndDenormalsAreZero);
#elif defined(__aarch64__)
  std::uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (1ULL << 24)));
#endif
}

void detail::parallel_for(std::int64_t count, std::int64_t grain, ParallelBody body,
                          void* context) {
  if (count <= 0) return;
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const int pieces = static_cast<int>(std::min<std::int64_t>(most, thread_count()));
  if (pieces == 1 || omp_in_parallel() != 0) {
    body(context, 0, count);
    return;
  }
#pragma omp parallel num_threads(pieces)
  {
    // The runtime may give fewer threads than asked for; the pieces stay the same.
    for (std::int64_t piece = omp_get_thread_num(); piece < pieces;
         piece += omp_get_num_threads()) {
      body(context, count * piece / pieces, count * (piece + 1) / pieces);
    }
  }
}

}  // namespace graft
