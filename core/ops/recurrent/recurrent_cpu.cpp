#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class T>
Kernel make_forward(KernelRequest& request) {
  if (!is_kernel_dtype<T>(request.dtype())) return {};
  return make_recurrent<T>(request, plain_product<T>);
}

template <class T>
Kernel make_backward(KernelRequest& request) {
  if (!is_kernel_dtype<T>(request.dtype())) return {};
  return make_recurrent_grad<T>(request, plain_product<T>);
}

}  // namespace

void register_recurrent_cpu(KernelRegistry& registry) {
  register_recurrent_kernels(registry, "panels", make_forward<float>, make_backward<float>);
  register_recurrent_kernels(registry, "eigen", make_forward<double>, make_backward<double>);
}

}  // namespace graft
