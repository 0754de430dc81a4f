#pragma once

#include "core/device/cuda/grid.h"

namespace graft {

template <class Body>
__global__ void run_items(const __grid_constant__ Body body, std::int64_t count) {
  for_each_item(count, [&](std::int64_t i) { body(i); });
}

/// Calls body(i) for i in [0, count) on the stream, a thread an item. Body is a struct of numbers
/// and of addresses on the device, at most 4 KB, with `__device__ void operator()(std::int64_t)
/// const`. Neighbouring items should touch neighbouring elements.
template <class Body>
void start_items(const Body& body, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch(run_items<Body>, blocks_for(count), dim3(kBlockThreads), 0, stream, body, count);
}

}  // namespace graft
