#pragma once

#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {

/// How the updates of one place follow one another: of each, the next one with the same key, and
/// whether it is the first. So a team that has the first can take all of them in their order, and
/// nothing is added by atomics. Made by comparing all pairs of keys.
struct KeyLink {
  std::int64_t next;  ///< -1 behind the last
  bool is_first;
};

struct SmallestOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

struct FindLinks {
  const std::int64_t* keys;
  KeyLink* links;
  std::int64_t count;

  template <class Team>
  __device__ void operator()(std::int64_t i, const Team& team) const {
    const std::int64_t key = keys[i];
    std::int64_t first = i;
    for (std::int64_t j = team.rank; j < i && first == i; j += Team::size) {
      if (keys[j] == key) first = j;
    }
    std::int64_t next = count;
    for (std::int64_t j = i + 1 + team.rank; j < count && next == count; j += Team::size) {
      if (keys[j] == key) next = j;
    }
    first = team.join(first, SmallestOf{});
    next = team.join(next, SmallestOf{});
    if (team.rank == 0) links[i] = {next < count ? next : -1, first == i};
  }
};

/// The keys of `count` updates and the links between them, in a workspace.
struct KeyMemory {
  static std::size_t bytes(std::int64_t count) {
    return static_cast<std::size_t>(count) * (sizeof(std::int64_t) + sizeof(KeyLink));
  }
  KeyMemory(void* workspace, std::int64_t count)
      : keys(static_cast<std::int64_t*>(workspace)),
        links(reinterpret_cast<KeyLink*>(keys + count)) {}

  std::int64_t* keys;
  KeyLink* links;
};

/// FindKey: has `__device__ std::int64_t operator()(std::int64_t update) const`.
template <class FindKey>
struct StoreKeys {
  FindKey find;
  std::int64_t* keys;
  __device__ void operator()(std::int64_t i) const { keys[i] = find(i); }
};

/// Fills keys and links.
template <class FindKey>
void start_links(const FindKey& find, const KeyMemory& memory, std::int64_t count,
                 cudaStream_t stream) {
  start_items(StoreKeys<FindKey>{find, memory.keys}, count, stream);
  start_rows_by<WarpTeam>(FindLinks{memory.keys, memory.links, count}, count, stream);
}

}  // namespace graft
