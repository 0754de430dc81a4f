#include "core/ops/kernels/product_cuda.h"

#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/lt_product_cuda.h"
#include "core/ops/tf32.h"

namespace graft {
namespace {

CudaProduct by_cublaslt(const DeviceProduct& product, const KernelRequest& request, bool has_rate) {
  const DType dtype = request.dtype();
  if (dtype != DType::f32 && dtype != DType::bf16) return {};
  const auto prepared = LtProduct::make(
      product,
      {.dtype = dtype, .allows_tf32 = allows_tf32(request.attributes()), .has_rate = has_rate},
      as_cuda(request.device()));
  if (prepared == nullptr) return {};
  return {[prepared](const void* a, const void* b, const void* c, void* y, const void* rate,
                     void* workspace) {
            prepared->run(a, b, c, y, static_cast<const float*>(rate), workspace);
          },
          prepared->workspace_bytes()};
}

CudaProduct by_tiles(const DeviceProduct& product, const KernelRequest& request) {
  CudaProduct prepared;
  visit_dtype(TypeList<float, double, BFloat16>{}, request.dtype(), [&]<class T>() {
    prepared.run = [product, stream = as_cuda(request.device()).stream()](
                       const void* a, const void* b, const void* c, void* y, const void* rate,
                       void*) {
      product.run<T>(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<const T*>(c),
                     static_cast<T*>(y), static_cast<const T*>(rate), stream);
    };
  });
  return prepared;
}

}  // namespace

CudaProduct prepare_product(const DeviceProduct& product, const KernelRequest& request,
                            ProductBy by, bool has_rate) {
  return by == ProductBy::cublaslt ? by_cublaslt(product, request, has_rate)
                                   : by_tiles(product, request);
}

}  // namespace graft
