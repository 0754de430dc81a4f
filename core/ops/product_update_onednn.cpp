#include "core/ops/product_update_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_by_onednn(KernelRequest& request) {
  if (request.dtype() != DType::f32 || updates_by_rows(request)) return {};
  return make_product_update<float>(request, onednn_product);
}

}  // namespace

void register_product_update_onednn(KernelRegistry& registry) {
  registry.add({.op = "SgdProductUpdate",
                .domain = kInternalDomain,
                .name = "onednn",
                .make = make_by_onednn});
}

}  // namespace graft
