#include "core/ops/kernels/split_product.h"
#include "core/ops/product/matmul_bf16.h"
#include "core/ops/product/product_start.h"
#include "core/ops/registry.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

Kernel make_by_parts(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  const MatMulProblem p(request);
  if (p.is_empty || !p.batch.empty()) return {};
  ProductSpec spec = product_of_rows(p, p.m);
  if (!suits_split(spec)) return {};
  const Tensor known = request.constant(1);
  spec.packs_b = known.defined();
  const SplitProduct split(spec);
  WorkspaceLayout layout;
  const RepeatedProduct<float> product(
      split_product(spec), layout, known.defined() ? known.values<const float>().data() : nullptr);
  const std::size_t scratch = layout.reserve_bytes(split.scratch_bytes());
  request.need_workspace(layout.bytes());
  return [=, start = ProductStart(request, p), alpha = p.alpha](const KernelArgs& args) {
    const Addend addend = start.of(args);
    split.run(alpha, args.input<float>(0), product.prepare(args, args.input<float>(1)), addend,
              args.output<float>(), workspace_at<std::byte>(args, scratch));
  };
}

}  // namespace

void register_matmul_tiles(KernelRegistry& registry) {
  for (const char* op : {"MatMul", "Gemm"}) {
    registry.add({.op = op, .name = "bf16_parts", .make = make_by_parts, .serves_alike = true});
    registry.add(
        {.op = op, .name = "bf16_tiles", .make = make_bf16_row_product, .serves_alike = true});
  }
}

#else

void register_matmul_tiles(KernelRegistry& /*registry*/) {}

#endif

}  // namespace graft
