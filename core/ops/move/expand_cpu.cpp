#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/tile_copy.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_expand(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const std::vector<std::int64_t> source = broadcast_strides(request.shape(), y);
  return strided_kernel(request.dtype(), StridedCopy(y.dims(), y.strides(), source));
}

Kernel make_tile(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const TileCopy copy(request.shape(), y);
  return strided_kernel(request.dtype(), StridedCopy(copy.dims, copy.target, copy.source));
}

}  // namespace

void register_expand_cpu(KernelRegistry& registry) {
  registry.add({.op = "Expand", .name = "plain", .make = make_expand});
  registry.add({.op = "Tile", .name = "plain", .make = make_tile});
}

}  // namespace graft
