#include "tools/graft/machine.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "core/base/parallel.h"
#include "core/ops/kernel_sets.h"

namespace graft::cli {
namespace {

/// Independent chains hide the latency of an FMA: 4 cycles, 2 a cycle need at least 8.
constexpr int kChains = 12;

// In a portable build a copy for each set of kernels.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__AVX2__)
#pragma GCC push_options
#pragma GCC target("arch=skylake-avx512")
namespace avx512 {
constexpr int kVectorBytes = 64;
#include "tools/graft/fma_chains_internal.h"
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=haswell")
namespace avx2 {
constexpr int kVectorBytes = 32;
#include "tools/graft/fma_chains_internal.h"
}  // namespace avx2
#pragma GCC pop_options
#define GRAFT_HAS_COPIES 1
constexpr int kOwnBytes = 16;
#elif defined(__AVX512F__)
constexpr int kOwnBytes = 64;
#elif defined(__AVX2__)
constexpr int kOwnBytes = 32;
#else
constexpr int kOwnBytes = 16;
#endif

namespace own {
constexpr int kVectorBytes = kOwnBytes;
#include "tools/graft/fma_chains_internal.h"
}  // namespace own

struct Chains {
  float (*run)(std::int64_t rounds);
  int lanes;
};

/// Those of the instructions that kernels run with.
Chains chosen_chains() {
  constexpr int kFloatBytes = sizeof(float);
#ifdef GRAFT_HAS_COPIES
  if (chosen_kernel_set().isa == Isa::avx512) {
    return {avx512::multiply_add, avx512::kVectorBytes / kFloatBytes};
  }
  if (chosen_kernel_set().isa == Isa::avx2) {
    return {avx2::multiply_add, avx2::kVectorBytes / kFloatBytes};
  }
#endif
  return {own::multiply_add, own::kVectorBytes / kFloatBytes};
}

}  // namespace

double measure_fma_peak() {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kRounds = 1'000'000;
  const std::int64_t threads = thread_count();
  const Chains chains = chosen_chains();
  double best = 0.0;
  // The best of several: other work on the machine only ever lowers the figure.
  for (int attempt = 0; attempt < 8; ++attempt) {
    volatile float sink = 0.0F;
    const auto start = Clock::now();
    parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const float result = chains.run(kRounds);
        if (result < 0.0F) sink = result;
      }
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double operations = 2.0 * kRounds * kChains * chains.lanes * static_cast<double>(threads);
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
