#include "core/ops/kernels/onednn.h"
#include "core/ops/train/product_update_kernels.h"

namespace graft {
namespace {

Kernel make_by_sgemm(const MatMulProblem& p) {
  return [p](const KernelArgs& args) {
    take_parameter(args, sizeof(float) * static_cast<std::size_t>(p.m * p.n));
    run_sgemm(p, -*args.input<float>(2) * p.alpha, left_operand<float>(args),
              right_operand<float>(args), 1.0F, args.output<float>());
  };
}

Kernel make_adding(KernelRequest& request) {
  if (request.dtype() != DType::f32 || !only_adds(request.node()) || adds_by_rows(request)) {
    return {};
  }
  const MatMulProblem p = gradient_product(request);
  if (suits_sgemm(p)) return make_by_sgemm(p);
  return make_adding_product<float>(request, onednn_product);
}

Kernel make_by_pieces(KernelRequest& request) {
  if (request.dtype() != DType::f32 || only_adds(request.node())) return {};
  return make_update_by_pieces<float>(request, onednn_product);
}

}  // namespace

void register_update_onednn(KernelRegistry& registry) {
  if (panels_suit()) return;
  const auto add = [&](std::string_view op, std::string_view name, KernelFactory make) {
    registry.add(
        {.op = op, .domain = kInternalDomain, .name = name, .make = make, .serves_alike = true});
  };
  for (const std::string_view op : product_forms()) {
    add(op, "onednn", make_adding);
    add(op, "onednn_pieces", make_by_pieces);
  }
}

}  // namespace graft
