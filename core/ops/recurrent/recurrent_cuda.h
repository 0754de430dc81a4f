#pragma once

#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/tiles_cuda.h"
#include "core/ops/recurrent/recurrent.h"

namespace graft {

/// Kernels of the gradients; those of the forward ops stand in recurrent_cuda.cu.
Kernel make_recurrent_grad_cuda(KernelRequest& request);

/// The kernel Pass<T>(request), if the kernels of cards take it: functions at their usual places,
/// time before batch, f32 or f64.
template <template <class> class Pass>
Kernel recurrent_kernel_cuda(KernelRequest& request) {
  const RecurrentSettings settings(request.node());
  Kernel kernel;
  if (!settings.is_default || settings.batch_first) return kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() { kernel = Pass<T>(request); });
  return kernel;
}

/// Copies a state [batch, hidden] of direction `d` from or to where the graph has it. A null input
/// is zeros, to a null output nothing is written.
template <class T>
void load_state(CudaDevice& device, const RecurrentSizes& sizes, std::int64_t d, const T* given,
                T* state) {
  const std::size_t bytes = static_cast<std::size_t>(sizes.state()) * sizeof(T);
  if (given == nullptr) {
    device.fill(state, 0, bytes);
  } else {
    device.copy_async(state, given + d * sizes.state(), bytes);
  }
}
template <class T>
void store_state(CudaDevice& device, const RecurrentSizes& sizes, std::int64_t d, const T* state,
                 T* output) {
  if (output == nullptr) return;
  device.copy_async(output + d * sizes.state(), state,
                    static_cast<std::size_t>(sizes.state()) * sizeof(T));
}

/// y = a' b' (y += with `adds`), all row-major with rows `ld` apart; a' is a or its transpose.
/// a': [m,k], b': [k,n].
template <class T>
struct RowsProduct {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  const T* a_data;
  std::int64_t lda;
  bool transposes_a;
  const T* b_data;
  std::int64_t ldb;
  bool transposes_b;
  T* y;
  std::int64_t ldy;
  bool adds = false;
  bool a_is_inner_contiguous = !transposes_a;
  bool b_is_inner_contiguous = transposes_b;

  __device__ int entry(std::int64_t) const { return 0; }
  __device__ T a(int, std::int64_t row, std::int64_t inner) const {
    return a_data[transposes_a ? inner * lda + row : row * lda + inner];
  }
  __device__ T b(int, std::int64_t inner, std::int64_t column) const {
    return b_data[transposes_b ? column * ldb + inner : inner * ldb + column];
  }
  __device__ void store(int, std::int64_t row, std::int64_t column, T sum) const {
    T& to = y[row * ldy + column];
    to = adds ? to + sum : sum;
  }
};

}  // namespace graft
