#include "core/ops/kernels/matmul_cuda.h"
#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/registry.h"

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
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [product, adds, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      product.run<T>(args.input<T>(0), args.input<T>(1), adds ? args.input<T>(2) : nullptr,
                     args.output<T>(), nullptr, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_matmul_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain) {
    registry.add({.op = op,
                  .domain = domain,
                  .device = DeviceKind::cuda,
                  .name = "tiles",
                  .make = make_product});
  };
  add("Gemm", "");
  add("MatMul", "");
  add("BatchedMatMul", kInternalDomain);
}

}  // namespace graft
