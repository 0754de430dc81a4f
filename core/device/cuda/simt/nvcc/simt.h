// What kernel texts are written in, on a card. The emulated twin stands in ../emulated; CMake
// chooses one of the two.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace graft {

/// Memory that the threads of a block share, as many bytes as `launch` was told.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char graft_dynamic_shared[];
  return reinterpret_cast<T*>(graft_dynamic_shared);
}

/// Reads or writes a V of several elements at once. The address must be aligned to alignof(V).
template <class V, class T>
__device__ V load_vector(const T* from) {
  return *reinterpret_cast<const V*>(from);
}
template <class V, class T>
__device__ void store_vector(T* to, const V& value) {
  *reinterpret_cast<V*>(to) = value;
}

/// Gives a kernel to a stream. What is wrong with the call, the next synchronization says.
template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Args... args) {
  const auto call = [&](Parameters... values) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&values))...};
    cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, shared_bytes,
                     stream);
  };
  call(static_cast<Parameters>(args)...);
}

}  // namespace graft
