#pragma once

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/index.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/move/scatter_reduction.h"
#include "core/ops/move/sorted_updates_cuda.h"

namespace graft {

struct ScatterSizes {
  std::int64_t count;      ///< updates of a table
  std::int64_t slice = 1;  ///< elements of an update
  std::int64_t tables = 1;
  std::int64_t table = 0;  ///< elements of a table
};

/// y takes in updates of whole slices, each place its own in their order: row `r` is the r % count
/// in the order of the keys, of table r / count. A key is the slice of the table that takes it.
template <class T>
struct TakeUpdates {
  const T* update;
  T* y;
  const KeyedUpdate* sorted;
  ScatterSizes by;
  ScatterReduction reduction;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row % by.count;
    const std::int64_t key = sorted[first].key;
    if (first > 0 && sorted[first - 1].key == key) return;
    const T* const updates = update + row / by.count * by.count * by.slice;
    T* const place = y + row / by.count * by.table + key * by.slice;
    for (std::int64_t j = team.rank; j < by.slice; j += Team::size) {
      T value = place[j];
      for (std::int64_t i = first; i < by.count && sorted[i].key == key; ++i) {
        value = combined(value, updates[sorted[i].update * by.slice + j]);
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

/// Scatters put input 2 onto input 0; gradients add input 0 to zeros.
enum class ScatterKind { scatter, gradient };

/// `make_find.operator()<Index>()` makes the function that finds the key of an update (StoreKeys),
/// but for its `indices`: they are those of each call.
template <class MakeFind>
Kernel scatter_kernel(KernelRequest& request, const ScatterSizes& by, ScatterKind kind,
                      const MakeFind& make_find) {
  const bool is_gradient = kind == ScatterKind::gradient;
  const auto reduction = is_gradient ? ScatterReduction::add : reduction_of(request);
  const std::size_t bytes = bytes_of(request.dtype(), request.output().shape.size());
  request.need_workspace(sort_bytes(by.count));
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_index(request, 1, [&]<class Index>() {
      kernel = [=, find = make_find.template operator()<Index>(),
                device = &as_cuda(request.device())](const KernelArgs& args) {
        T* const y = args.output<T>();
        if (is_gradient) {
          device->fill(y, 0, bytes);
        } else if (args.inputs[0] != y) {
          device->copy_async(y, args.inputs[0], bytes);
        }
        auto find_now = find;
        find_now.indices = args.input<Index>(1);
        const KeyedUpdate* const sorted =
            start_sort(find_now, by.count, args.workspace, device->stream());
        const TakeUpdates<T> take{args.input<T>(is_gradient ? 0 : 2), y, sorted, by, reduction};
        start_rows(take, by.tables * by.count, by.slice, true, device->stream());
      };
    });
  });
  return kernel;
}

}  // namespace graft
