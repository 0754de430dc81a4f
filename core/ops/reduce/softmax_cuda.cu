#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Rows along an axis: element i of row r stands at start(r) + i * inner.
template <class T>
struct Rows {
  const T* x;
  const T* dy;  ///< of gradients; x is then the output
  T* y;
  std::int64_t length;
  std::int64_t inner;

  __device__ std::int64_t start(std::int64_t row) const {
    return row / inner * length * inner + row % inner;
  }
  template <class Team>
  __device__ T largest(std::int64_t first, const Team& team) const {
    T most = device_math::lowest<T>();
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      most = Larger{}(most, x[first + i * inner]);
    }
    return team.join(most, Larger{});
  }
  /// Calls set(i, at) for the elements of a thread; `at`: where element i stands.
  template <class Team, class Set>
  __device__ void for_each(std::int64_t first, const Team& team, Set set) const {
    for (std::int64_t i = team.rank; i < length; i += Team::size) set(i, first + i * inner);
  }
};

template <class T>
struct Softmax {
  Rows<T> rows;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = rows.start(row);
    const T most = rows.largest(first, team);
    double sum = 0.0;
    rows.for_each(first, team, [&](std::int64_t, std::int64_t at) {
      rows.y[at] = device_math::exp(rows.x[at] - most);
      sum += static_cast<double>(rows.y[at]);
    });
    const T factor = static_cast<T>(1.0 / team.join(sum, Add{}));
    rows.for_each(first, team, [&](std::int64_t, std::int64_t at) { rows.y[at] *= factor; });
  }
};

template <class T>
struct LogSoftmax {
  Rows<T> rows;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = rows.start(row);
    const T most = rows.largest(first, team);
    const double sum = team_sum(team, rows.length, [&](std::int64_t i) {
      return static_cast<double>(device_math::exp(rows.x[first + i * rows.inner] - most));
    });
    const T log_sum = static_cast<T>(device_math::log(sum));
    rows.for_each(first, team, [&](std::int64_t, std::int64_t at) {
      rows.y[at] = (rows.x[at] - most) - log_sum;
    });
  }
};

struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

/// 1 at the first largest element.
template <class T>
struct Hardmax {
  Rows<T> rows;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = rows.start(row);
    const T most = rows.largest(first, team);
    std::int64_t best = rows.length;
    rows.for_each(first, team, [&](std::int64_t i, std::int64_t at) {
      if (i < best && rows.x[at] == most) best = i;
    });
    best = team.join(best, Smaller{});
    rows.for_each(first, team,
                  [&](std::int64_t i, std::int64_t at) { rows.y[at] = i == best ? T{1} : T{0}; });
  }
};

template <class T>
struct SoftmaxGrad {
  Rows<T> rows;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = rows.start(row);
    const T sum = static_cast<T>(team_sum(team, rows.length, [&](std::int64_t i) {
      const std::int64_t at = first + i * rows.inner;
      return static_cast<double>(rows.x[at]) * static_cast<double>(rows.dy[at]);
    }));
    rows.for_each(first, team, [&](std::int64_t, std::int64_t at) {
      rows.y[at] = rows.x[at] * (rows.dy[at] - sum);
    });
  }
};

template <class T>
struct LogSoftmaxGrad {
  Rows<T> rows;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = rows.start(row);
    const T sum = static_cast<T>(team_sum(team, rows.length, [&](std::int64_t i) {
      return static_cast<double>(rows.dy[first + i * rows.inner]);
    }));
    rows.for_each(first, team, [&](std::int64_t, std::int64_t at) {
      rows.y[at] = rows.dy[at] - device_math::exp(rows.x[at]) * sum;
    });
  }
};

template <template <class> class Op>
Kernel make(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", -1));
  const bool has_gradient = request.input_count() > 1;
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [loop, has_gradient,
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      const Op<T> op{{args.input<T>(0), has_gradient ? args.input<T>(1) : nullptr, args.output<T>(),
                      loop.axis, loop.inner}};
      start_rows(op, loop.outer * loop.inner, loop.axis, loop.inner == 1, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_softmax_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory factory) {
    registry.add(
        {.op = op, .domain = domain, .device = DeviceKind::cuda, .name = "rows", .make = factory});
  };
  add("Softmax", "", make<Softmax>);
  add("LogSoftmax", "", make<LogSoftmax>);
  add("Hardmax", "", make<Hardmax>);
  add("SoftmaxGrad", kInternalDomain, make<SoftmaxGrad>);
  add("LogSoftmaxGrad", kInternalDomain, make<LogSoftmaxGrad>);
}

}  // namespace graft
