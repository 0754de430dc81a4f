#include "core/base/parallel.h"

#include <omp.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "core/base/error.h"

namespace graft {
namespace {

#if defined(__SSE__)
constexpr std::uint64_t kFlushBits = 0x8040;  // MXCSR: flush to zero, denormals are zero
std::uint64_t control_word() {
  return _mm_getcsr();
}
void set_control_word(std::uint64_t word) {
  _mm_setcsr(static_cast<unsigned>(word));
}
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushBits = std::uint64_t{1} << 24;  // FPCR: flush to zero
std::uint64_t control_word() {
  std::uint64_t word = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void set_control_word(std::uint64_t word) {
  __asm__ volatile("msr fpcr, %0" : : "r"(word));
}
#else
constexpr std::uint64_t kFlushBits = 0;
std::uint64_t control_word() {
  return 0;
}
void set_control_word(std::uint64_t) {}
#endif

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

DenormalsFlushed::DenormalsFlushed() : saved_(control_word()) {
  set_control_word(saved_ | kFlushBits);
  // Each thread that opens parallel regions has a pool of its own: once for each of those.
  thread_local const bool pool_is_set = [] {
#pragma omp parallel
    set_control_word(control_word() | kFlushBits);
    return true;
  }();
  static_cast<void>(pool_is_set);
}

DenormalsFlushed::~DenormalsFlushed() {
  set_control_word(saved_);
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
  const std::int64_t share = count / pieces;
  const std::int64_t longer = count % pieces;  // so many pieces have one more
  // The whole team even for fewer pieces: libgomp ends the threads that a smaller team leaves out,
  // and would have to start them again for the next loop.
#pragma omp parallel num_threads(thread_count())
  {
    // The runtime may give fewer threads than asked for; the pieces stay the same.
    for (std::int64_t piece = omp_get_thread_num(); piece < pieces;
         piece += omp_get_num_threads()) {
      const std::int64_t first = piece * share + std::min(piece, longer);
      body(context, first, first + share + (piece < longer ? 1 : 0));
    }
  }
}

}  // namespace graft
