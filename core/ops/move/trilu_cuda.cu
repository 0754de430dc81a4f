#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"

namespace graft {
namespace {

template <class T>
struct Trilu {
  const T* x;
  const std::int64_t* k;  ///< null: 0
  T* y;
  std::int64_t height;
  std::int64_t width;
  bool is_upper;

  __device__ void operator()(std::int64_t i) const {
    // Beyond the matrix all k are alike; clamped, it cannot overflow.
    std::int64_t shift = k == nullptr ? 0 : *k;
    shift = shift < -height ? -height : shift > width ? width : shift;
    const std::int64_t diagonal = i / width % height + shift;
    const std::int64_t column = i % width;
    const bool is_kept = is_upper ? column >= diagonal : column <= diagonal;
    y[i] = is_kept ? x[i] : T{};
  }
};

Kernel make_trilu(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const std::int64_t height = shape[shape.rank() - 2];
  const std::int64_t width = shape[shape.rank() - 1];
  const bool is_upper = request.attributes().get_int("upper", 1) != 0;
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [=, size = shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(Trilu<T>{args.input<T>(0), args.input<std::int64_t>(1), args.output<T>(), height,
                           width, is_upper},
                  size, stream);
    };
  });
  return kernel;
}

/// A thread a line along the axis, in the order of accumulation.
template <class T, bool is_product>
struct Accumulated {
  const T* x;
  T* y;
  std::int64_t dim;
  std::int64_t inner;
  bool is_exclusive;
  bool is_reverse;

  __device__ void operator()(std::int64_t line) const {
    const std::int64_t first = line / inner * dim * inner + line % inner;
    T so_far = is_product ? T{1} : T{0};
    for (std::int64_t i = 0; i < dim; ++i) {
      const std::int64_t at = first + (is_reverse ? dim - 1 - i : i) * inner;
      const T one = x[at];
      const T next = is_product ? so_far * one : so_far + one;
      y[at] = is_exclusive ? so_far : next;
      so_far = next;
    }
  }
};

template <bool is_product>
Kernel make_cumulative(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const Tensor given = request.constant(1);
  if (!given.defined()) return {};
  const int axis = normalize_axis(to_int64(given).front(), shape.rank(), request.node().label());
  const std::int64_t dim = shape[axis];
  const std::int64_t inner = shape.size(axis + 1, shape.rank());
  const bool is_exclusive = request.attributes().get_int("exclusive", 0) != 0;
  const bool is_reverse = request.attributes().get_int("reverse", 0) != 0;
  const std::int64_t lines = shape.size() / dim;
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    start_items(Accumulated<T, is_product>{args.input<T>(0), args.output<T>(), dim, inner,
                                           is_exclusive, is_reverse},
                lines, stream);
  });
}

}  // namespace

void register_trilu_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"Trilu", make_trilu},
                    {"CumSum", make_cumulative<false>},
                    {"CumProd", make_cumulative<true>}});
}

}  // namespace graft
