#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {
namespace {

/// A row along an axis, and the team that has it.
template <class T, class Team>
struct Row {
  const T* x;
  const T* dy;  ///< of gradients; x is then the output
  T* y;
  std::int64_t first;
  std::int64_t length;
  std::int64_t inner;  ///< from one element to the next
  const Team& team;

  /// Calls visit(at) for the elements of a thread; `at`: where the element stands.
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    for (std::int64_t i = team.rank; i < length; i += Team::size) visit(first + i * inner);
  }
  __device__ T largest() const {
    T most = device_math::lowest<T>();
    for_each([&](std::int64_t at) { most = Larger{}(most, x[at]); });
    return team.join(most, Larger{});
  }
  /// Of term(at).
  template <class Term>
  __device__ double sum(Term term) const {
    return team_sum(team, length,
                    [&](std::int64_t i) { return static_cast<double>(term(first + i * inner)); });
  }
};

struct Softmax {
  template <class T, class Team>
  __device__ void operator()(const Row<T, Team>& row) const {
    const T most = row.largest();
    double sum = 0.0;
    row.for_each([&](std::int64_t at) {
      row.y[at] = device_math::exp(row.x[at] - most);
      sum += static_cast<double>(row.y[at]);
    });
    const T factor = static_cast<T>(1.0 / row.team.join(sum, Add{}));
    row.for_each([&](std::int64_t at) { row.y[at] *= factor; });
  }
};

struct LogSoftmax {
  template <class T, class Team>
  __device__ void operator()(const Row<T, Team>& row) const {
    const T most = row.largest();
    const double sum = row.sum([&](std::int64_t at) { return device_math::exp(row.x[at] - most); });
    const T log_sum = static_cast<T>(device_math::log(sum));
    row.for_each([&](std::int64_t at) { row.y[at] = (row.x[at] - most) - log_sum; });
  }
};

/// 1 at the first largest element.
struct Hardmax {
  template <class T, class Team>
  __device__ void operator()(const Row<T, Team>& row) const {
    const T most = row.largest();
    std::int64_t best = row.first + row.length * row.inner;
    row.for_each([&](std::int64_t at) {
      if (at < best && row.x[at] == most) best = at;
    });
    best = row.team.join(best, Smaller{});
    row.for_each([&](std::int64_t at) { row.y[at] = at == best ? T{1} : T{0}; });
  }
};

struct SoftmaxGrad {
  template <class T, class Team>
  __device__ void operator()(const Row<T, Team>& row) const {
    const T sum = static_cast<T>(row.sum([&](std::int64_t at) {
      return static_cast<double>(row.x[at]) * static_cast<double>(row.dy[at]);
    }));
    row.for_each([&](std::int64_t at) { row.y[at] = row.x[at] * (row.dy[at] - sum); });
  }
};

struct LogSoftmaxGrad {
  template <class T, class Team>
  __device__ void operator()(const Row<T, Team>& row) const {
    const T sum = static_cast<T>(row.sum([&](std::int64_t at) { return row.dy[at]; }));
    row.for_each(
        [&](std::int64_t at) { row.y[at] = row.dy[at] - device_math::exp(row.x[at]) * sum; });
  }
};

template <class Op, class T>
struct OnRows {
  const T* x;
  const T* dy;
  T* y;
  std::int64_t length;
  std::int64_t inner;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row / inner * length * inner + row % inner;
    Op{}(Row<T, Team>{x, dy, y, first, length, inner, team});
  }
};

template <class Op>
Kernel make(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", -1));
  return cuda_float_kernel(request, [loop]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const OnRows<Op, T> rows{args.input<T>(0), args.input<T>(1), args.output<T>(), loop.axis,
                             loop.inner};
    start_rows(rows, loop.outer * loop.inner, loop.axis, loop.inner == 1, stream);
  });
}

}  // namespace

void register_softmax_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows",
                   {{"Softmax", make<Softmax>},
                    {"LogSoftmax", make<LogSoftmax>},
                    {"Hardmax", make<Hardmax>},
                    {"SoftmaxGrad", make<SoftmaxGrad>, kInternalDomain},
                    {"LogSoftmaxGrad", make<LogSoftmaxGrad>, kInternalDomain}});
}

}  // namespace graft
