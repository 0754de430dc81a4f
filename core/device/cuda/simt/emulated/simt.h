// What kernel texts are written in, without a card: g++ compiles them, and each thread of a block
// is a fiber (core/device/cuda/emulated). The twin for nvcc stands in ../nvcc; CMake chooses one of
// the two.
#pragma once

// One block runs at a time, so that what its threads share may be static.
#define __shared__ static
#include <cuda_runtime_api.h>
#undef __launch_bounds__
#define __launch_bounds__(...)

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "core/device/cuda/emulated/block.h"
#include "core/device/cuda/emulated/streams.h"

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  graft::emulated::sync_block(where);
}
inline void __syncwarp(unsigned mask = ~0U,
                       std::source_location where = std::source_location::current()) {
  graft::emulated::sync_warp(mask, where);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int = warpSize,
              std::source_location where = std::source_location::current()) {
  graft::emulated::exchange(mask, &value, sizeof(value), lane, where);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int = warpSize,
                  std::source_location where = std::source_location::current()) {
  const int lane = graft::emulated::lane() ^ distance;
  graft::emulated::exchange(mask, &value, sizeof(value), lane, where);
  return value;
}
template <class T>
T atomicAdd(T* sum, T value) {
  T old;
  T next;
  __atomic_load(sum, &old, __ATOMIC_RELAXED);
  do {
    next = old + value;
  } while (!__atomic_compare_exchange(sum, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

namespace graft {

/// Memory that the threads of a block share, as many bytes as `launch` was told.
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulated::dynamic_shared());
}

/// Reads or writes a V of several elements at once. The address must be aligned to alignof(V).
template <class V, class T>
V load_vector(const T* from) {
  emulated::check_alignment(from, alignof(V));
  return *reinterpret_cast<const V*>(from);
}
template <class V, class T>
void store_vector(T* to, const V& value) {
  emulated::check_alignment(to, alignof(V));
  *reinterpret_cast<V*>(to) = value;
}

/// Gives a kernel to a stream. What is wrong with the call, the next synchronization says.
template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Args... args) {
  const auto give = [&](Parameters... values) {
    emulated::enqueue(
        stream, [=] { emulated::run_grid(grid, block, shared_bytes, [&] { kernel(values...); }); });
  };
  give(static_cast<Parameters>(args)...);
}

}  // namespace graft
