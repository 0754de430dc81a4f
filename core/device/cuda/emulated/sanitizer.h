// Tells the sanitizers that stacks are switched. Without them nothing is left of it.
//
// ThreadSanitizer sees each fiber as a thread, so that it reports what two threads of a block touch
// without a barrier in between. The files of this folder are then compiled without it: what the
// scheduler does is not what it has to judge.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(GRAFT_FIBERS_UNDER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace graft::emulated {

#if defined(__SANITIZE_ADDRESS__)
inline void leave_stack(void** fake, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake, bottom, bytes);
}
inline void enter_stack(void* fake, const void** bottom, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
}
inline void poison(const void* memory, std::size_t bytes) {
  ASAN_POISON_MEMORY_REGION(memory, bytes);
}
inline void unpoison(const void* memory, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}
#else
inline void leave_stack(void**, const void*, std::size_t) {}
inline void enter_stack(void*, const void**, std::size_t*) {}
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif

#if defined(GRAFT_FIBERS_UNDER_TSAN)
inline void* new_race_context() {
  return __tsan_create_fiber(0);
}
inline void* race_context() {
  return __tsan_get_current_fiber();
}
inline void enter_race_context(void* context) {
  __tsan_switch_to_fiber(context, __tsan_switch_to_fiber_no_sync);
}
inline void delete_race_context(void* context) {
  if (context != nullptr) __tsan_destroy_fiber(context);
}
inline void happens_before(void* point) {
  __tsan_release(point);
}
inline void happens_after(void* point) {
  __tsan_acquire(point);
}
#else
inline void* new_race_context() {
  return nullptr;
}
inline void* race_context() {
  return nullptr;
}
inline void enter_race_context(void*) {}
inline void delete_race_context(void*) {}
inline void happens_before(void*) {}
inline void happens_after(void*) {}
#endif

}  // namespace graft::emulated
