#include "core/ops/kernels/matmul_cuda.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/factory_cuda.h"

namespace graft {
namespace {

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
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    product.run<T>(args.input<T>(0), args.input<T>(1), adds ? args.input<T>(2) : nullptr,
                   args.output<T>(), nullptr, stream);
  });
}

}  // namespace

void register_matmul_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "tiles",
                   {{"Gemm", make_product},
                    {"MatMul", make_product},
                    {"BatchedMatMul", make_product, kInternalDomain}});
}

}  // namespace graft
