#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/product_cuda.h"

namespace graft {
namespace {

template <ProductBy by>
Kernel make_product(KernelRequest& request) {
  const MatMulProblem problem(request);
  if (problem.is_empty) return [](const KernelArgs&) {};
  if (!DeviceProduct::fits(problem)) return {};
  DeviceProduct product(problem);
  const bool adds = problem.beta != 0.0F;
  if (adds) {
    const auto steps = broadcast_strides(request.shape(2), request.output().shape);
    product.c_row = steps[0];
    product.c_column = steps[1];
  }
  const CudaProduct prepared = prepare_product(product, request, by, /*has_rate=*/false);
  if (!prepared.run) return {};
  request.need_workspace(prepared.workspace_bytes);
  return [run = prepared.run, adds](const KernelArgs& args) {
    run(args.input<void>(0), args.input<void>(1), adds ? args.input<void>(2) : nullptr,
        args.output<void>(), nullptr, args.workspace);
  };
}

template <ProductBy by>
void add_products(KernelRegistry& registry, std::string_view name) {
  add_cuda_kernels(registry, name,
                   {{"Gemm", make_product<by>},
                    {"MatMul", make_product<by>},
                    {"BatchedMatMul", make_product<by>, kInternalDomain}});
}

}  // namespace

void register_matmul_cuda(KernelRegistry& registry) {
  add_products<ProductBy::cublaslt>(registry, "cublaslt");
  add_products<ProductBy::tiles>(registry, "tiles");
}

}  // namespace graft
