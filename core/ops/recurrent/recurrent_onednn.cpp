#include "core/ops/recurrent/recurrent.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_forward(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  return make_recurrent<float>(request, onednn_product);
}

Kernel make_backward(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  return make_recurrent_grad<float>(request, onednn_product);
}

}  // namespace

void register_recurrent_onednn(KernelRegistry& registry) {
  if (panels_suit()) return;
  register_recurrent_kernels(registry, "onednn", make_forward, make_backward);
}

}  // namespace graft
