#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

/// Inline, in no namespace of its own: any linker would keep one copy of it.
[[gnu::noinline]] inline void scale(std::vector<float>& numbers, float factor) {
  using Sixteen [[gnu::vector_size(16 * sizeof(float))]] = float;
  std::size_t i = 0;
  for (; i + 16 <= numbers.size(); i += 16) {
    Sixteen some;
    std::memcpy(&some, &numbers[i], sizeof(some));
    some = some * factor + 1.0F;
    std::memcpy(&numbers[i], &some, sizeof(some));
  }
  for (; i < numbers.size(); ++i) numbers[i] = numbers[i] * factor + 1.0F;
}

/// A static of an inline function: with templates the compiler gives it a name that is unique in
/// the process, whatever the loader meets.
template <class T>
int& calls() {
  static int count = 0;
  return ++count, count;
}

/// What kernels throw is caught by its type.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a set of kernels says of itself.
struct Answers {
  std::vector<float> numbers{};
  std::uintptr_t scale_lies_at = 0;
  int calls = 0;
};
