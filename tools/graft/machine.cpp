#include "tools/graft/machine.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "core/base/parallel.h"

namespace graft::cli {
namespace {

constexpr int kVectorBytes = 64;
using Vector = float __attribute__((vector_size(kVectorBytes)));
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(float));
/// Independent chains hide the latency of an FMA: 4 cycles, 2 a cycle need at least 8.
constexpr int kChains = 12;

// In a portable build the processor chooses among copies, as the kernels are chosen.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX2__) && !defined(__SANITIZE_ADDRESS__)
#define GRAFT_FOR_EACH_PROCESSOR \
  [[gnu::target_clones("arch=skylake-avx512", "arch=haswell", "default")]]
#else
#define GRAFT_FOR_EACH_PROCESSOR
#endif

/// Returns a sum of all results, so that none is optimised away.
GRAFT_FOR_EACH_PROCESSOR float multiply_add(std::int64_t rounds) {
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = Vector{} + static_cast<float>(c);
  const Vector factor = Vector{} + 0.999F;
  const Vector term = Vector{} + 0.001F;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  Vector all = sums[0];
  for (int c = 1; c < kChains; ++c) all += sums[c];
  float result = 0.0F;
  for (int lane = 0; lane < kLanes; ++lane) result += all[lane];
  return result;
}

}  // namespace

double measure_fma_peak() {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kRounds = 1'000'000;
  const std::int64_t threads = thread_count();
  double best = 0.0;
  // The best of several: other work on the machine only ever lowers the figure.
  for (int attempt = 0; attempt < 8; ++attempt) {
    volatile float sink = 0.0F;
    const auto start = Clock::now();
    parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const float result = multiply_add(kRounds);
        if (result < 0.0F) sink = result;
      }
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double operations = 2.0 * kRounds * kChains * kLanes * static_cast<double>(threads);
    best = std::max(best, operations / seconds);
  }
  return best;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace graft::cli
