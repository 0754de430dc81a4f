#pragma once

#include <cstddef>
#include <functional>

#include "core/ops/kernels/matmul_cuda.h"

namespace graft {

/// Who makes a product on a card.
enum class ProductBy {
  cublaslt,  ///< f32 and bf16
  tiles,     ///< f32, f64 and bf16, by our own kernel
};

/// A product ready to run; empty where its maker does not take it.
struct CudaProduct {
  using Run = std::function<void(const void* a, const void* b, const void* c, void* y,
                                 const void* rate, void* workspace)>;
  Run run;
  std::size_t workspace_bytes = 0;
};

/// Of operands of the type of input 0. `has_rate`: `run` gets one (DeviceProduct::run). The node's
/// attribute `tf32` allows tensor cores to round f32 operands.
CudaProduct prepare_product(const DeviceProduct& product, const KernelRequest& request,
                            ProductBy by, bool has_rate);

}  // namespace graft
