#pragma once

#include <cstddef>
#include <vector>

#include "core/device/device.h"

namespace graft {

/// A buffer that must exist from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes;
  int first;
  int last;
};

/// The bytes that a buffer takes of a block in which each starts at a multiple of kAlignment.
inline std::size_t aligned(std::size_t bytes) {
  return (bytes + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
}

struct MemoryPlan {
  /// Where each buffer starts, aligned to Device::kAlignment.
  std::vector<std::size_t> offsets;
  std::size_t arena_bytes = 0;
  /// The most bytes alive at one step: no plan needs fewer.
  std::size_t lower_bound_bytes = 0;
};

/// The bytes that are alive at each step, as they would lie in an arena.
std::vector<std::size_t> alive_bytes(const std::vector<Lifetime>& lifetimes);
/// The bytes that are alive at the step with the most: no plan needs fewer.
std::size_t most_alive_bytes(const std::vector<Lifetime>& lifetimes);

/// Places buffers in one arena so that no two that live at the same step overlap. Greedy: one after
/// the other, each at the lowest offset that is free throughout its lifetime. The largest come
/// first; where that wastes memory, the longest-lived, and those largest by bytes and steps
/// together, are tried too, and the smallest arena counts.
/// Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace graft
