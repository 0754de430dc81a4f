#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "core/ops/kernel.h"

namespace graft {

/// A copy between two strided views of one shape, as StridedCopy on the CPU: steps are counted in
/// elements, a source step of 0 repeats, a negative one reverses; no two target elements coincide.
class DeviceStridedCopy {
 public:
  static constexpr int kMostAxes = 8;
  struct Axis {
    std::int64_t dim;
    std::int64_t target;
    std::int64_t source;
  };

  DeviceStridedCopy(const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& target_steps,
                    const std::vector<std::int64_t>& source_steps);

  /// False if more than kMostAxes remain when neighbours are joined: it cannot run then.
  bool fits() const { return count <= kMostAxes; }

  /// `width`: bytes an element, 1, 2, 4, 8 or 16.
  void run(void* target, const void* source, std::size_t width, cudaStream_t stream) const;

  // Read by the kernel, which has a copy of this.
  Axis axes[kMostAxes] = {};
  int count = 0;
  std::int64_t size = 1;
};

/// Whether elements of that type can be moved: packed ones and strings cannot.
bool is_movable(DType dtype);

/// Copies input 0 to output 0, from `source_offset` elements on; empty for what is not movable or
/// does not fit.
Kernel device_strided_kernel(const KernelRequest& request, const DeviceStridedCopy& copy,
                             std::int64_t source_offset = 0);

}  // namespace graft
