#include "core/ops/kernels/elementwise.h"

namespace graft {
namespace {

template <int N>
Kernel kernel_of(const KernelRequest& request, RunFunction run) {
  std::array<Shape, N> shapes;
  std::array<std::size_t, N> widths{};
  for (int k = 0; k < N; ++k) {
    if (!request.has_input(k)) continue;
    shapes[k] = request.shape(k);
    widths[k] = bytes_of(request.dtype(k), 1);
  }
  return [loop = BroadcastLoop<N>(request.output().shape, shapes), run = std::move(run), widths,
          width = bytes_of(request.output().dtype, 1)](const KernelArgs& args) {
    loop.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
      std::array<RunOperand, N> x;
      for (int k = 0; k < N; ++k) {
        const auto* const elements = args.input<std::byte>(k);
        const std::size_t skipped = static_cast<std::size_t>(from[k]) * widths[k];
        x[k] = {elements == nullptr ? nullptr : elements + skipped, loop.inner_steps()[k]};
      }
      run(count, x, args.output<std::byte>() + static_cast<std::size_t>(offset) * width);
    });
  };
}

}  // namespace

Kernel elementwise_kernel(const KernelRequest& request, RunFunction run) {
  switch (request.input_count()) {
    case 1:
      return kernel_of<1>(request, std::move(run));
    case 2:
      return kernel_of<2>(request, std::move(run));
    case 3:
      return kernel_of<3>(request, std::move(run));
    case 4:
      return kernel_of<4>(request, std::move(run));
    default:
      return {};
  }
}

}  // namespace graft
