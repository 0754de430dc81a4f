#include "core/ops/move/slice.h"

#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The selected part of a larger tensor as a strided view.
struct View {
  std::int64_t offset = 0;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> steps;
};

View view_of(const Shape& whole, const std::vector<AxisRange>& ranges) {
  View view;
  const std::vector<std::int64_t> strides = whole.strides();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    view.offset += ranges[i].start * strides[i];
    view.dims.push_back(ranges[i].count);
    // The step of an axis with one element is never taken, and may be too long to multiply.
    view.steps.push_back(ranges[i].count > 1 ? ranges[i].step * strides[i] : 0);
  }
  return view;
}

Kernel make_slice(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const auto ranges = slice_ranges(request.node(), request.shape());
  if (!ranges) return {};
  const View view = view_of(request.shape(), *ranges);
  return strided_kernel(request.dtype(), StridedCopy(y.dims(), y.strides(), view.steps),
                        view.offset);
}

template <class T>
Kernel make_slice_grad_typed(const KernelRequest& request) {
  const Shape& dy = request.shape();
  const Shape& dx = request.output().shape;
  const View view = view_of(dx, slice_grad_ranges(request.node(), dy));
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
