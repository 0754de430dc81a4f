#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace graft {

/// Dropout in training with the random bits of the CPU's: y = x / (1 - ratio) where the element
/// survives, else 0. The stream of random numbers is that of the op plus the run's step, which lies
/// on the device, so that each replay of recorded work draws anew.
struct DeviceDropout {
  std::int64_t size = 0;
  double ratio = 0.5;
  std::uint64_t seed = 0;
  std::uint64_t first_stream = 0;  ///< of step 0

  /// `y` may be `x`.
  void run(const float* x, float* y, const std::uint64_t* step, cudaStream_t stream) const;
};

}  // namespace graft
