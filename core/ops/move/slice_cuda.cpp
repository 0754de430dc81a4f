#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/strided_cuda.h"
#include "core/ops/move/slice.h"

namespace graft {
namespace {

Kernel make_slice(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const auto ranges = slice_ranges(request.node(), request.shape());
  if (!ranges) return {};
  const SliceView view(request.shape(), *ranges);
  return device_strided_kernel(request, DeviceStridedCopy(y.dims(), y.strides(), view.steps),
                               view.offset);
}

Kernel make_slice_grad(KernelRequest& request) {
  const Shape& dy = request.shape();
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  const SliceView view(dx, slice_grad_ranges(request.node(), dy));
  const DeviceStridedCopy copy(dy.dims(), view.steps, dy.strides());
  if (!is_movable(request.dtype()) || !copy.fits()) return {};
  const std::size_t width = bytes_of(request.dtype(), 1);
  const std::size_t bytes = bytes_of(request.dtype(), dx.size());
  const bool clears = dy.size() != dx.size();
  return [=, skipped = view.offset * static_cast<std::int64_t>(width),
          device = &as_cuda(request.device())](const KernelArgs& args) {
    if (clears) device->fill(args.output<void>(), 0, bytes);
    copy.run(args.output<std::byte>() + skipped, args.input<void>(0), width, device->stream());
  };
}

}  // namespace

void register_slice_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "strided",
                   {{"Slice", make_slice}, {"SliceGrad", make_slice_grad, kInternalDomain}});
}

}  // namespace graft
