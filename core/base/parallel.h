#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace graft {

/// Threads used by kernels. Starts as the number of processors that this process may use, by its
/// affinity and the quotas of its control groups.
int thread_count();
/// Sets it for all parallel loops from now on; oneDNN's included. Throws Error{argument} if
/// below 1.
void set_thread_count(int count);

/// While it lives, the calling thread treats denormals as zero, and so do the parallel loops that
/// it starts: a denormal gradient slows a step tenfold.
class DenormalsFlushed {
 public:
  DenormalsFlushed();
  ~DenormalsFlushed();
  DenormalsFlushed(const DenormalsFlushed&) = delete;
  DenormalsFlushed& operator=(const DenormalsFlushed&) = delete;

 private:
  std::uint64_t saved_;
};

namespace detail {
using ParallelBody = void (*)(void* context, std::int64_t first, std::int64_t last);
void parallel_for(std::int64_t count, std::int64_t grain, ParallelBody body, void* context);
}  // namespace detail

/// Calls body(first, last) on disjoint pieces of [0, count), as many as threads at most, and waits.
/// Runs on the calling thread when count < 2 * grain. The split depends only on count, grain and
/// thread_count(), so a reduction per piece gives the same bits each time. The body must not throw.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  detail::parallel_for(
      count, grain,
      [](void* context, std::int64_t first, std::int64_t last) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(first, last);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace graft
