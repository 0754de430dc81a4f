#pragma once

#include <utility>

#include "core/ops/kernels/items_cuda.h"

namespace graft {

/// Which place takes an update.
struct KeyedUpdate {
  std::int64_t key;
  std::int64_t update;
};

/// FindKey: has `__device__ std::int64_t operator()(std::int64_t update) const`.
template <class FindKey>
struct StoreKeys {
  FindKey find;
  KeyedUpdate* updates;
  __device__ void operator()(std::int64_t i) const { updates[i] = {find(i), i}; }
};

/// Merges every two neighbouring runs of `width`: an update finds by halving how many of the other
/// run go before it. Of equal keys those of the left run do, so that they keep their order.
struct MergeRuns {
  const KeyedUpdate* from;
  KeyedUpdate* to;
  std::int64_t count;
  std::int64_t width;

  __device__ void operator()(std::int64_t i) const {
    const KeyedUpdate own = from[i];
    const bool is_left = i / width % 2 == 0;
    const std::int64_t other = (i / width + (is_left ? 1 : -1)) * width;
    const std::int64_t first = other < count ? other : count;
    std::int64_t low = first;
    std::int64_t high = other + width < count ? other + width : count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      const std::int64_t key = from[middle].key;
      if (key < own.key || (key == own.key && !is_left)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    to[(is_left ? i : i - width) + low - first] = own;
  }
};

/// Of the workspace of `start_sort`.
inline std::size_t sort_bytes(std::int64_t count) {
  return 2 * static_cast<std::size_t>(count) * sizeof(KeyedUpdate);
}

/// Where `count` updates will lie by their keys, those of one key in their own order.
template <class FindKey>
const KeyedUpdate* start_sort(const FindKey& find, std::int64_t count, void* workspace,
                              cudaStream_t stream) {
  auto* from = static_cast<KeyedUpdate*>(workspace);
  KeyedUpdate* to = from + count;
  start_items(StoreKeys<FindKey>{find, from}, count, stream);
  for (std::int64_t width = 1; width < count; width *= 2) {
    start_items(MergeRuns{from, to, count, width}, count, stream);
    std::swap(from, to);
  }
  return from;
}

}  // namespace graft
