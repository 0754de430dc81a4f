#pragma once

#include <simt.h>

#include <algorithm>
#include <cstdint>

namespace graft {

inline constexpr unsigned kBlockThreads = 256;

/// Enough blocks for a thread an item, but no more than keep a card busy: each thread takes several
/// then (`for_each_item`).
inline dim3 blocks_for(std::int64_t items, unsigned threads = kBlockThreads) {
  constexpr std::int64_t kMostBlocks = 8192;
  const std::int64_t wanted = (items + threads - 1) / threads;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, kMostBlocks)));
}

/// Calls body(i) for i in [0, count), shared among all threads of the grid.
template <class Body>
__device__ void for_each_item(std::int64_t count, Body body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += step) body(i);
}

}  // namespace graft
