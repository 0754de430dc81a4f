#include "core/ops/kernels/strided_cuda.h"

#include "core/device/cuda/grid.h"
#include "core/ops/kernels/width.h"

namespace graft {
namespace {

/// A thread an element, in the order of the shape.
template <class T>
__global__ void copy_strided(T* target, const T* source,
                             const __grid_constant__ DeviceStridedCopy view) {
  for_each_item(view.size, [&](std::int64_t i) {
    std::int64_t to = 0;
    std::int64_t from = 0;
    for (int k = view.count; k-- > 0;) {
      const DeviceStridedCopy::Axis& axis = view.axes[k];
      const std::int64_t outer = i / axis.dim;
      const std::int64_t at = i - outer * axis.dim;
      to += at * axis.target;
      from += at * axis.source;
      i = outer;
    }
    target[to] = source[from];
  });
}

template <class T>
void start(void* target, const void* source, const DeviceStridedCopy& view, cudaStream_t stream) {
  launch(copy_strided<T>, blocks_for(view.size), dim3(kBlockThreads), 0, stream,
         static_cast<T*>(target), static_cast<const T*>(source), view);
}

}  // namespace

void DeviceStridedCopy::run(void* target, const void* source, std::size_t width,
                            cudaStream_t stream) const {
  if (size == 0) return;
  switch (width) {
    case 1:
      return start<std::uint8_t>(target, source, *this, stream);
    case 2:
      return start<std::uint16_t>(target, source, *this, stream);
    case 4:
      return start<std::uint32_t>(target, source, *this, stream);
    case 8:
      return start<std::uint64_t>(target, source, *this, stream);
    default:
      return start<Wide>(target, source, *this, stream);
  }
}

}  // namespace graft
