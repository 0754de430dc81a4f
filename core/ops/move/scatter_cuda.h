#pragma once

#include "core/ops/move/key_links_cuda.h"
#include "core/ops/move/scatter_reduction.h"

namespace graft {

/// y takes in updates of whole slices, each place its own in their order: row `r` is update
/// r % count of table r / count. `update` and `y` have `count` slices and `table` elements a table.
template <class T>
struct TakeUpdates {
  const T* update;
  T* y;
  KeyMemory keys;  ///< of each update, the slice of the table that takes it
  std::int64_t count;
  std::int64_t slice;
  std::int64_t table;
  ScatterReduction reduction;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row % count;
    if (!keys.links[first].is_first) return;
    const T* const updates = update + row / count * count * slice;
    T* const place = y + row / count * table + keys.keys[first] * slice;
    for (std::int64_t j = team.rank; j < slice; j += Team::size) {
      T value = place[j];
      for (std::int64_t i = first; i >= 0; i = keys.links[i].next) {
        value = combined(value, updates[i * slice + j]);
      }
      place[j] = value;
    }
  }

 private:
  __device__ T combined(T old, T fresh) const {
    switch (reduction) {
      case ScatterReduction::add:
        return old + fresh;
      case ScatterReduction::mul:
        return old * fresh;
      case ScatterReduction::max:
        return old < fresh ? fresh : old;
      case ScatterReduction::min:
        return fresh < old ? fresh : old;
      default:
        return fresh;
    }
  }
};

/// Gives all updates of `tables` tables to the stream, behind `start_links`.
template <class T>
void start_updates(const TakeUpdates<T>& take, std::int64_t tables, cudaStream_t stream) {
  start_rows(take, tables * take.count, take.slice, true, stream);
}

}  // namespace graft
