#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_expand(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const std::vector<std::int64_t> source = broadcast_strides(request.shape(), y);
  return strided_kernel(request.dtype(), StridedCopy(y.dims(), y.strides(), source));
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
  return strided_kernel(request.dtype(), StridedCopy(dims, target, source));
}

}  // namespace

void register_expand_cpu(KernelRegistry& registry) {
  registry.add({.op = "Expand", .name = "plain", .make = make_expand});
  registry.add({.op = "Tile", .name = "plain", .make = make_tile});
}

}  // namespace graft
