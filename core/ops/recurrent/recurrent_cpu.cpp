#include "core/ops/recurrent/recurrent.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_forward(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(),
              [&]<class T>() { kernel = make_recurrent<T>(request, eigen_product<T>); });
  return kernel;
}

Kernel make_backward(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(),
              [&]<class T>() { kernel = make_recurrent_grad<T>(request, eigen_product<T>); });
  return kernel;
}

}  // namespace

void register_recurrent_cpu(KernelRegistry& registry) {
  register_recurrent_kernels(registry, "eigen", make_forward, make_backward);
}

}  // namespace graft
