#include <Eigen/Core>
#include <cmath>

#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/nan_max.h"
#include "core/ops/kernels/row_math.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class T>
using Tile = Eigen::Array<T, Eigen::Dynamic, 1, 0, AxisLoop::kTile, 1>;  // on the stack
template <class T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

// Each op has two forms: `row` for n contiguous elements, `columns` for a tile of columns whose
// rows lie `step` apart. Both work in place.

/// Largest element of each column.
template <class T>
Tile<T> column_max(const T* x, std::int64_t n, std::int64_t step, std::int64_t width) {
  Tile<T> largest = ConstRow<T>(x, width);
  for (std::int64_t i = 1; i < n; ++i) {
    largest = nan_max(largest, ConstRow<T>(x + i * step, width)).eval();
  }
  return largest;
}

struct Softmax {
  template <class T>
  static void row(const T* x, std::int64_t n, T* y) {
    exp_row(x, n, max_row(x, n), y);
    const auto sum = static_cast<T>(reduce_row<reducing::Sum<T>>(y, n, T{0}));
    Row<T>(y, n) *= T{1} / sum;
  }
  template <class T>
  static void columns(const T* x, std::int64_t n, std::int64_t step, std::int64_t width, T* y) {
    const Tile<T> largest = column_max(x, n, step, width);
    Tile<double> sum = Tile<double>::Zero(width);
    for (std::int64_t i = 0; i < n; ++i) {
      Row<T> out(y + i * step, width);
      out = (ConstRow<T>(x + i * step, width) - largest).exp();
      sum += out.template cast<double>();
    }
    const Tile<T> factor = sum.inverse().template cast<T>();
    for (std::int64_t i = 0; i < n; ++i) Row<T>(y + i * step, width) *= factor;
  }
};

struct LogSoftmax {
  template <class T>
  static void row(const T* x, std::int64_t n, T* y) {
    const T largest = max_row(x, n);
    const auto log_sum = static_cast<T>(std::log(sum_exp_row(x, n, largest)));
    Row<T>(y, n) = (ConstRow<T>(x, n) - largest) - log_sum;
  }
  template <class T>
  static void columns(const T* x, std::int64_t n, std::int64_t step, std::int64_t width, T* y) {
    const Tile<T> largest = column_max(x, n, step, width);
    Tile<double> sum = Tile<double>::Zero(width);
    for (std::int64_t i = 0; i < n; ++i) {
      sum += (ConstRow<T>(x + i * step, width) - largest).exp().template cast<double>();
    }
    const Tile<T> log_sum = sum.log().template cast<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      Row<T>(y + i * step, width) = (ConstRow<T>(x + i * step, width) - largest) - log_sum;
    }
  }
};

/// 1 at the first largest element.
struct Hardmax {
  template <class T>
  static void row(const T* x, std::int64_t n, T* y) {
    columns(x, n, 1, 1, y);
  }
  template <class T>
  static void columns(const T* x, std::int64_t n, std::int64_t step, std::int64_t width, T* y) {
    for (std::int64_t j = 0; j < width; ++j) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n; ++i) {
        if (x[i * step + j] > x[best * step + j]) best = i;
      }
      for (std::int64_t i = 0; i < n; ++i) y[i * step + j] = i == best ? T{1} : T{0};
    }
  }
};

struct SoftmaxGrad {
  template <class T>
  static void row(const T* y, const T* dy, std::int64_t n, T* dx) {
    const auto sum = static_cast<T>(dot_row(y, dy, n));
    Row<T>(dx, n) = ConstRow<T>(y, n) * (ConstRow<T>(dy, n) - sum);
  }
  template <class T>
  static void columns(const T* y, const T* dy, std::int64_t n, std::int64_t step,
                      std::int64_t width, T* dx) {
    Tile<double> total = Tile<double>::Zero(width);
    for (std::int64_t i = 0; i < n; ++i) {
      total += (ConstRow<T>(y + i * step, width) * ConstRow<T>(dy + i * step, width))
                   .template cast<double>();
    }
    const Tile<T> sum = total.template cast<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      Row<T>(dx + i * step, width) =
          ConstRow<T>(y + i * step, width) * (ConstRow<T>(dy + i * step, width) - sum);
    }
  }
};

struct LogSoftmaxGrad {
  template <class T>
  static void row(const T* y, const T* dy, std::int64_t n, T* dx) {
    const auto sum = static_cast<T>(reduce_row<reducing::Sum<T>>(dy, n, T{0}));
    Row<T>(dx, n) = ConstRow<T>(dy, n) - ConstRow<T>(y, n).exp() * sum;
  }
  template <class T>
  static void columns(const T* y, const T* dy, std::int64_t n, std::int64_t step,
                      std::int64_t width, T* dx) {
    Tile<double> total = Tile<double>::Zero(width);
    for (std::int64_t i = 0; i < n; ++i) {
      total += ConstRow<T>(dy + i * step, width).template cast<double>();
    }
    const Tile<T> sum = total.template cast<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      Row<T>(dx + i * step, width) =
          ConstRow<T>(dy + i * step, width) - ConstRow<T>(y + i * step, width).exp() * sum;
    }
  }
};

template <class Op>
Kernel make_forward(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", -1));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [loop](const KernelArgs& args) {
      loop.for_each_tile([&](std::int64_t start, std::int64_t width) {
        const T* const x = args.input<T>(0) + start;
        T* const y = args.output<T>() + start;
        if (loop.inner == 1) {
          Op::row(x, loop.axis, y);
        } else {
          Op::columns(x, loop.axis, loop.inner, width, y);
        }
      });
    };
  });
  return kernel;
}

template <class Op>
Kernel make_backward(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", -1));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [loop](const KernelArgs& args) {
      loop.for_each_tile([&](std::int64_t start, std::int64_t width) {
        const T* const y = args.input<T>(0) + start;
        const T* const dy = args.input<T>(1) + start;
        T* const dx = args.output<T>() + start;
        if (loop.inner == 1) {
          Op::row(y, dy, loop.axis, dx);
        } else {
          Op::columns(y, dy, loop.axis, loop.inner, width, dx);
        }
      });
    };
  });
  return kernel;
}

}  // namespace

void register_softmax_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add({.op = op, .domain = domain, .name = "eigen", .make = make});
  };
  add("Softmax", "", make_forward<Softmax>);
  add("LogSoftmax", "", make_forward<LogSoftmax>);
  add("Hardmax", "", make_forward<Hardmax>);
  add("SoftmaxGrad", kInternalDomain, make_backward<SoftmaxGrad>);
  add("LogSoftmaxGrad", kInternalDomain, make_backward<LogSoftmaxGrad>);
}

}  // namespace graft
