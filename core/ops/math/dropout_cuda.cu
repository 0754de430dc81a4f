#include "core/ops/math/dropout_cuda.h"

#include <algorithm>
#include <cmath>

#include "core/device/cuda/grid.h"
#include "core/device/cuda/philox.h"

namespace graft {
namespace {

/// A thread the four elements of one block of Philox. An element survives when its 24 random bits
/// are at least the threshold.
__global__ void drop(const __grid_constant__ DeviceDropout d, std::uint32_t threshold, float scale,
                     const float* x, float* y, const std::uint64_t* step) {
  const std::uint64_t random_stream = d.first_stream + *step;
  for_each_item((d.size + 3) / 4, [&](std::int64_t item) {
    const PhiloxWords words = philox_block(d.seed, random_stream, static_cast<std::uint64_t>(item));
    for (int j = 0; j < 4; ++j) {
      const std::int64_t i = 4 * item + j;
      if (i >= d.size) break;
      const bool survives = (words.word[j] >> 8) >= threshold;
      y[i] = survives && scale > 0.0F ? x[i] * scale : 0.0F;
    }
  });
}

}  // namespace

void DeviceDropout::run(const float* x, float* y, const std::uint64_t* step,
                        cudaStream_t stream) const {
  if (size == 0) return;
  const auto threshold =
      static_cast<std::uint32_t>(std::ceil((ratio > 0.0 ? std::min(ratio, 1.0) : 0.0) * 0x1p24));
  const float scale = ratio < 1.0 ? static_cast<float>(1.0 / (1.0 - ratio)) : 0.0F;
  launch(drop, blocks_for((size + 3) / 4), dim3(kBlockThreads), 0, stream, *this, threshold, scale,
         x, y, step);
}

}  // namespace graft
