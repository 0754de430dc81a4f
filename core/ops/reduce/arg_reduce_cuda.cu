#include "core/base/error.h"
#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Whichever is more extreme; NaN wins.
template <bool is_largest>
struct Extreme {
  template <class T>
  __device__ T operator()(T a, T b) const {
    const bool wins = is_largest ? a > b : a < b;
    return wins || a != a ? a : b;
  }
};

template <class T, bool is_largest>
struct ArgReduce {
  const T* x;
  std::int64_t* y;
  std::int64_t length;
  std::int64_t inner;
  bool takes_last;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const T* const from = x + row / inner * length * inner + row % inner;
    T best = from[0];
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      best = Extreme<is_largest>{}(best, from[i * inner]);
    }
    best = team.join(best, Extreme<is_largest>{});
    const auto is_best = [&](T one) { return one == best || (one != one && best != best); };
    // The first place, or minus the last one.
    std::int64_t place = length;
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      const std::int64_t here = takes_last ? -i : i;
      if (is_best(from[i * inner]) && here < place) place = here;
    }
    place = team.join(place, Extreme<false>{});
    if (team.rank == 0) y[row] = takes_last ? -place : place;
  }
};

template <bool is_largest>
Kernel make(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", 0));
  if (loop.axis == 0 && request.output().shape.size() > 0) {
    fail(ErrorKind::shape, request.node().label(), ": axis of ", request.shape(),
         " is empty and has no extreme");
  }
  const bool last = request.attributes().get_int("select_last_index", 0) != 0;
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      const ArgReduce<T, is_largest> reduce{args.input<T>(0), args.output<std::int64_t>(),
                                            loop.axis, loop.inner, last};
      start_rows(reduce, loop.outer * loop.inner, loop.axis, loop.inner == 1, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_arg_reduce_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory factory) {
    registry.add({.op = op, .device = DeviceKind::cuda, .name = "rows", .make = factory});
  };
  add("ArgMax", make<true>);
  add("ArgMin", make<false>);
}

}  // namespace graft
