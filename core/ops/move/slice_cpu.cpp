#include "core/ops/move/slice.h"

#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_slice(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const auto ranges = slice_ranges(request.node(), request.shape());
  if (!ranges) return {};
  const SliceView view(request.shape(), *ranges);
  return strided_kernel(request.dtype(), StridedCopy(y.dims(), y.strides(), view.steps),
                        view.offset);
}

template <class T>
Kernel make_slice_grad_typed(const KernelRequest& request) {
  const Shape& dy = request.shape();
  const Shape& dx = request.output().shape;
  const SliceView view(dx, slice_grad_ranges(request.node(), dy));
  // dy that covers all of dx leaves nothing to clear.
  const bool clears = dy.size() != dx.size();
  const StridedCopy copy(dy.dims(), view.steps, dy.strides());
  return [copy, clears, offset = view.offset, size = dx.size()](const KernelArgs& args) {
    if (clears) fill_elements(args.output<T>(), size, T{});
    copy.run(args.output<T>() + offset, args.input<T>(0));
  };
}

Kernel make_slice_grad(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() { kernel = make_slice_grad_typed<T>(request); });
  return kernel;
}

}  // namespace

void register_slice_cpu(KernelRegistry& registry) {
  registry.add({.op = "Slice", .name = "plain", .make = make_slice});
  registry.add(
      {.op = "SliceGrad", .domain = kInternalDomain, .name = "plain", .make = make_slice_grad});
}

}  // namespace graft
