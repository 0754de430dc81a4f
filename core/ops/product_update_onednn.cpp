#include "core/ops/matmul_internal.h"
#include "core/ops/onednn_internal.h"
#include "core/ops/product_update_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_by_sgemm(const MatMulProblem& p) {
  return [m = p.m, n = p.n, k = p.k, alpha = p.alpha](const KernelArgs& args) {
    take_parameter(args, sizeof(float) * static_cast<std::size_t>(m * n));
    const float rate = -*args.input<float>(3) * alpha;
    dnnl_sgemm('T', 'N', m, n, k, rate, args.input<float>(0), m, args.input<float>(1), n, 1.0F,
               args.output<float>(), n);
  };
}

Kernel make_by_onednn(KernelRequest& request) {
  if (request.dtype() != DType::f32 || updates_by_rows(request)) return {};
  const MatMulProblem p(request);
  if (suits_sgemm(p)) return make_by_sgemm(p);
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
