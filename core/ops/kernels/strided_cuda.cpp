#include "core/ops/kernels/strided_cuda.h"

#include "core/device/cuda/cuda_device.h"

namespace graft {

DeviceStridedCopy::DeviceStridedCopy(const std::vector<std::int64_t>& dims,
                                     const std::vector<std::int64_t>& target_steps,
                                     const std::vector<std::int64_t>& source_steps) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    size *= dims[i];
    if (dims[i] == 1) continue;
    const Axis axis{dims[i], target_steps[i], source_steps[i]};
    Axis* const last = count > 0 && fits() ? &axes[count - 1] : nullptr;
    if (last != nullptr && last->target == axis.target * axis.dim &&
        last->source == axis.source * axis.dim) {
      *last = {last->dim * axis.dim, axis.target, axis.source};
    } else if (count < kMostAxes) {
      axes[count++] = axis;
    } else {
      count = kMostAxes + 1;
    }
  }
}

bool is_movable(DType dtype) {
  const int bits = bits_of(dtype);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128;
}

Kernel device_strided_kernel(const KernelRequest& request, const DeviceStridedCopy& copy,
                             std::int64_t source_offset) {
  if (!is_movable(request.dtype()) || !copy.fits()) return {};
  const std::size_t width = bytes_of(request.dtype(), 1);
  return [copy, width, skipped = source_offset * static_cast<std::int64_t>(width),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    copy.run(args.output<std::byte>(), args.input<std::byte>(0) + skipped, width, stream);
  };
}

}  // namespace graft
