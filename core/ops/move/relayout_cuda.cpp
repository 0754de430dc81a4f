#include "core/ops/kernels/strided_cuda.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_relayout(KernelRequest& request) {
  const Shape& shape = request.shape();
  return device_strided_kernel(
      request, DeviceStridedCopy(shape.dims(), layout_strides(shape, request.output().layout),
                                 layout_strides(shape, request.layout())));
}

}  // namespace

void register_relayout_cuda(KernelRegistry& registry) {
  registry.add({.op = "Relayout",
                .domain = kInternalDomain,
                .device = DeviceKind::cuda,
                .name = "strided",
                .make = make_relayout,
                .knows_layouts = true});
}

}  // namespace graft
