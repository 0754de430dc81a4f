#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/strided_cuda.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_expand(KernelRequest& request) {
  const Shape& y = request.output().shape;
  const std::vector<std::int64_t> source = broadcast_strides(request.shape(), y);
  return device_strided_kernel(request, DeviceStridedCopy(y.dims(), y.strides(), source));
}

/// Each axis is two: the repeats, along which the source stands still, and the axis itself.
Kernel make_tile(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const std::vector<std::int64_t> x_strides = x.strides();
  const std::vector<std::int64_t> y_strides = y.strides();
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> target;
  std::vector<std::int64_t> source;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    dims.insert(dims.end(), {y[axis] / x[axis], x[axis]});
    target.insert(target.end(), {y_strides[at] * x[axis], y_strides[at]});
    source.insert(source.end(), {0, x_strides[at]});
  }
  return device_strided_kernel(request, DeviceStridedCopy(dims, target, source));
}

}  // namespace

void register_expand_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op, .device = DeviceKind::cuda, .name = "strided", .make = make});
  };
  add("Expand", make_expand);
  add("Tile", make_tile);
}

}  // namespace graft
