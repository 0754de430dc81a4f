#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_relayout(KernelRequest& request) {
  const Shape& shape = request.shape();
  return strided_kernel(request.dtype(),
                        StridedCopy(shape.dims(), layout_strides(shape, request.output().layout),
                                    layout_strides(shape, request.layout())));
}

}  // namespace

void register_relayout_cpu(KernelRegistry& registry) {
  registry.add({.op = "Relayout",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_relayout,
                .knows_layouts = true});
}

}  // namespace graft
