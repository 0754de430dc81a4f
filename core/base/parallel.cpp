#include "core/base/parallel.h"

#include <omp.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "core/base/error.h"

namespace graft {
namespace {

// The register that says how this thread rounds and whether denormals count as zero.
#if defined(__SSE__)
constexpr std::uint64_t kFlushDenormals = 0x8040;
std::uint64_t float_control() {
  return _mm_getcsr();
}
void set_float_control(std::uint64_t control) {
  _mm_setcsr(static_cast<unsigned>(control));
}
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushDenormals = 1ULL << 24;
std::uint64_t float_control() {
  std::uint64_t control = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void set_float_control(std::uint64_t control) {
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
constexpr std::uint64_t kFlushDenormals = 0;
std::uint64_t float_control() {
  return 0;
}
void set_float_control(std::uint64_t) {}
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

void flush_denormals_on_this_thread() {
  set_float_control(float_control() | kFlushDenormals);
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
  const std::uint64_t control = float_control();
  const std::int64_t share = count / pieces;
  const std::int64_t longer = count % pieces;  // so many pieces have one more
#pragma omp parallel num_threads(pieces)
  {
    if (omp_get_thread_num() != 0) set_float_control(control);
    // The runtime may give fewer threads than asked for; the pieces stay the same.
    for (std::int64_t piece = omp_get_thread_num(); piece < pieces;
         piece += omp_get_num_threads()) {
      const std::int64_t first = piece * share + std::min(piece, longer);
      body(context, first, first + share + (piece < longer ? 1 : 0));
    }
  }
}

}  // namespace graft
