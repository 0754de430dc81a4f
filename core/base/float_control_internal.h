#pragma once

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace graft {

// The calling thread's control register of floating-point arithmetic: how it rounds, and what it
// does with denormals. What arithmetic leaves there (flags that say what happened) is not part of
// it.

#if defined(__SSE__)
inline constexpr std::uint64_t kFlushDenormals =
    0x8040;  // MXCSR: flush to zero, denormals are zero
inline std::uint64_t float_control() {
  return _mm_getcsr() & ~0x3FU;
}
inline void set_float_control(std::uint64_t word) {
  _mm_setcsr(static_cast<unsigned>(word));
}
/// Whether max, min and ordered comparisons of the processor leave a flag where they meet a NaN,
/// and what this thread's says since it was set.
inline constexpr bool kFlagsNan = true;
inline bool nan_flag() {
  return (_mm_getcsr() & 1U) != 0;  // invalid operation
}
inline void set_nan_flag(bool is_raised) {
  _mm_setcsr((_mm_getcsr() & ~1U) | (is_raised ? 1U : 0U));
}
#elif defined(__aarch64__)
inline constexpr std::uint64_t kFlushDenormals = std::uint64_t{1} << 24;  // FPCR: flush to zero
inline std::uint64_t float_control() {
  std::uint64_t word = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
inline void set_float_control(std::uint64_t word) {
  __asm__ volatile("msr fpcr, %0" : : "r"(word));
}
#else
inline constexpr std::uint64_t kFlushDenormals = 0;
inline std::uint64_t float_control() {
  return 0;
}
inline void set_float_control(std::uint64_t) {}
#endif

#if !defined(__SSE__)
inline constexpr bool kFlagsNan = false;
inline bool nan_flag() {
  return false;
}
inline void set_nan_flag(bool) {}
#endif

}  // namespace graft
