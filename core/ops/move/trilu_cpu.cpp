#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

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

struct Sum {
  static constexpr int kIdentity = 0;
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};

struct Product {
  static constexpr int kIdentity = 1;
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};

/// Lines along the axis of CumSum and CumProd.
struct Lines {
  Lines(const KernelRequest& request, int input, const Tensor& axis_tensor) {
    const Shape& shape = request.shape(input);
    const int axis =
        normalize_axis(to_int64(axis_tensor).front(), shape.rank(), request.node().label());
    outer = shape.size(0, axis);
    dim = shape[axis];
    inner = shape.size(axis + 1, shape.rank());
    exclusive = request.attributes().get_int("exclusive", 0) != 0;
    reverse = request.attributes().get_int("reverse", 0) != 0;
  }
  /// Offset of the i-th element in the order of accumulation, within block o of inner lines.
  std::int64_t at(std::int64_t o, std::int64_t i) const {
    return (o * dim + (reverse ? dim - 1 - i : i)) * inner;
  }
  template <class Body>
  void for_each_block(Body&& body) const {
    parallel_for(outer, kElementwiseGrain / (dim * inner) + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t o = first; o < last; ++o) body(o);
                 });
  }

  std::int64_t outer;
  std::int64_t dim;
  std::int64_t inner;
  bool exclusive;
  bool reverse;
};

template <class Op>
Kernel make_cumulative(KernelRequest& request) {
  if (request.shape().size() == 0) return [](const KernelArgs&) {};
  const Tensor axis = request.constant(1);
  if (!axis.defined()) return {};
  const Lines lines(request, 0, axis);
  Kernel kernel;
  visit_kernel_dtype(Signless<NumericTypes>{}, request.dtype(), [&]<class T>() {
    kernel = [lines](const KernelArgs& args) {
      T* const y = args.output<T>();
      lines.for_each_block([&](std::int64_t o) {
        for (std::int64_t i = 0; i < lines.dim; ++i) {
          const std::int64_t at = lines.at(o, i);
          const std::int64_t before = lines.at(o, i - 1);
          const T* const x = args.input<T>(0) + (lines.exclusive ? before : at);
          for (std::int64_t j = 0; j < lines.inner; ++j) {
            const T so_far = i == 0 ? T{Op::kIdentity} : y[before + j];
            const T next = i == 0 && lines.exclusive ? T{Op::kIdentity} : x[j];
            y[at + j] = Op::combine(so_far, next);
          }
        }
      });
    };
  });
  return kernel;
}

/// With P(i) the product of the elements before i, dx(i) = P(i) * (sum over the outputs j that
/// contain x(i) of dy(j) * (product of the elements between i and j)); the sum is a recurrence from
/// the other end. Nothing is divided, so zeros need no care.
template <class T>
void differentiate_line(const Lines& lines, std::int64_t o, std::int64_t j, const T* dy, const T* x,
                        T* dx) {
  T product{1};
  for (std::int64_t i = 0; i < lines.dim; ++i) {
    dx[lines.at(o, i) + j] = product;
    product *= x[lines.at(o, i) + j];
  }
  T sum{0};  // of the outputs behind i, without the factor x(i)
  for (std::int64_t i = lines.dim; i-- > 0;) {
    const std::int64_t at = lines.at(o, i) + j;
    const T with_own = lines.exclusive ? sum : dy[at] + sum;
    dx[at] *= with_own;
    sum = lines.exclusive ? dy[at] + x[at] * sum : x[at] * with_own;
  }
}

Kernel make_cum_prod_grad(KernelRequest& request) {
  if (request.shape().size() == 0) return [](const KernelArgs&) {};
  const Tensor axis = request.constant(2);
  if (!axis.defined()) return {};
  const Lines lines(request, 0, axis);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [lines](const KernelArgs& args) {
      lines.for_each_block([&](std::int64_t o) {
        for (std::int64_t j = 0; j < lines.inner; ++j) {
          differentiate_line(lines, o, j, args.input<T>(0), args.input<T>(1), args.output<T>());
        }
      });
    };
  });
  return kernel;
}

}  // namespace

void register_trilu_cpu(KernelRegistry& registry) {
  registry.add({.op = "Trilu", .name = "plain", .make = make_trilu});
  registry.add({.op = "CumSum", .name = "plain", .make = make_cumulative<Sum>});
  registry.add({.op = "CumProd", .name = "plain", .make = make_cumulative<Product>});
  registry.add({.op = "CumProdGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_cum_prod_grad});
}

}  // namespace graft
