#include "core/ops/kernels/split_product.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Those over all steps may be large enough for tiles.
Product<float> any_product(const ProductSpec& spec) {
#if defined(GRAFT_HAS_BF16_PRODUCTS)
  if (suits_split(spec)) return split_product(spec);
#endif
  return onednn_product(spec);
}

Kernel make_forward(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  return make_recurrent<float>(request, any_product);
}

Kernel make_backward(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  return make_recurrent_grad<float>(request, any_product);
}

}  // namespace

void register_recurrent_onednn(KernelRegistry& registry) {
  if (panels_suit()) return;
  register_recurrent_kernels(registry, "onednn", make_forward, make_backward);
}

}  // namespace graft
