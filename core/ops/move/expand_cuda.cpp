#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/strided_cuda.h"
#include "core/ops/move/tile_copy.h"

namespace graft {
namespace {

Kernel make_expand(KernelRequest& request) {
  const Shape& y = request.output().shape;
  const std::vector<std::int64_t> source = broadcast_strides(request.shape(), y);
  return device_strided_kernel(request, DeviceStridedCopy(y.dims(), y.strides(), source));
}

Kernel make_tile(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const TileCopy copy(request.shape(), y);
  return device_strided_kernel(request, DeviceStridedCopy(copy.dims, copy.target, copy.source));
}

}  // namespace

void register_expand_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "strided", {{"Expand", make_expand}, {"Tile", make_tile}});
}

}  // namespace graft
