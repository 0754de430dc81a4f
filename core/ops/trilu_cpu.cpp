#include <algorithm>

#include "core/ops/elementwise_internal.h"
#include "core/ops/registry.h"
#include "core/ops/strided_internal.h"

namespace graft {
namespace {

Kernel make_trilu(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const std::int64_t height = shape[shape.rank() - 2];
  const std::int64_t width = shape[shape.rank() - 1];
  const std::int64_t rows = shape.size() / width;
  const bool upper = request.attributes().get_int("upper", 1) != 0;
  const bool has_k = request.has_input(1);
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      // Beyond the matrix all k are alike; clamped, it cannot overflow.
      const std::int64_t k = has_k ? std::clamp(*args.input<std::int64_t>(1), -height, width) : 0;
      parallel_for(rows, kElementwiseGrain / width + 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
          const T* const x = args.input<T>(0) + row * width;
          T* const y = args.output<T>() + row * width;
          const std::int64_t diagonal = row % height + k;
          // Kept: [cut, width) or [0, cut).
          const std::int64_t cut =
              std::clamp<std::int64_t>(upper ? diagonal : diagonal + 1, 0, width);
          if (x != y) std::copy_n(x, width, y);
          std::fill(upper ? y : y + cut, upper ? y + cut : y + width, T{});
        }
      });
    };
  });
  return kernel;
}

Kernel make_cum_sum(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const Tensor axis_tensor = request.constant(1);
  if (!axis_tensor.defined()) return {};
  const int axis =
      normalize_axis(to_int64(axis_tensor).front(), shape.rank(), request.node().label());
  const std::int64_t outer = shape.size(0, axis);
  const std::int64_t dim = shape[axis];
  const std::int64_t inner = shape.size(axis + 1, shape.rank());
  const bool exclusive = request.attributes().get_int("exclusive", 0) != 0;
  const bool reverse = request.attributes().get_int("reverse", 0) != 0;
  Kernel kernel;
  visit_dtype(NumericTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      parallel_for(outer, kElementwiseGrain / (dim * inner) + 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t o = first; o < last; ++o) {
                       for (std::int64_t i = 0; i < dim; ++i) {
                         const std::int64_t at = (o * dim + (reverse ? dim - 1 - i : i)) * inner;
                         const std::int64_t before = at - (reverse ? -inner : inner);
                         const T* const x = args.input<T>(0) + (exclusive ? before : at);
                         T* const y = args.output<T>();
                         for (std::int64_t j = 0; j < inner; ++j) {
                           const T sum = i == 0 ? T{} : y[before + j];
                           const T added = i == 0 && exclusive ? T{} : x[j];
                           y[at + j] = static_cast<T>(wrapping(sum) + wrapping(added));
                         }
                       }
                     }
                   });
    };
  });
  return kernel;
}

}  // namespace

void register_trilu_cpu(KernelRegistry& registry) {
  registry.add({.op = "Trilu", .name = "plain", .make = make_trilu});
  registry.add({.op = "CumSum", .name = "plain", .make = make_cum_sum});
}

}  // namespace graft
