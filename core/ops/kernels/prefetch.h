#pragma once

#include <cstdint>

#include "core/base/machine.h"

namespace graft {

// Asks for numbers that are soon read. Addresses past the end of an operand do no harm.

/// A vector, into the second cache.
template <class T>
void prefetch(const T* from) {
  constexpr int kForReading = 0;
  constexpr int kSecondCache = 2;
  __builtin_prefetch(from, kForReading, kSecondCache);
}

/// `count` numbers, one after the other, into the first cache: the processor's own guesses end with
/// a row and with a page.
template <class T>
void prefetch_run(const T* from, std::int64_t count) {
  constexpr std::int64_t kLine = kCacheLineBytes / std::int64_t{sizeof(T)};
  for (std::int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
}

}  // namespace graft
