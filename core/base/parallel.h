#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace graft {

/// Threads used by kernels. Starts as the number of cores this process may run on.
int thread_count();
/// Sets it for kernels planned from now on. Throws Error{argument} if below 1.
void set_thread_count(int count);

/// Makes this thread treat denormals as zero: a denormal gradient slows a step tenfold. The pool's
/// threads take the setting over from the thread that calls `parallel_for`.
void flush_denormals_on_this_thread();

namespace detail {
using ParallelBody = void (*)(void* context, std::int64_t first, std::int64_t last);
void parallel_for(std::int64_t count, std::int64_t grain, ParallelBody body, void* context);
}  // namespace detail

/// Calls body(first, last) on disjoint pieces of [0, count), one static piece a thread, and waits.
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
