#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/reduce/arg_reduce.h"

namespace graft {
namespace {

/// Extreme: Larger or Smaller.
template <class T, class Extreme>
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
      best = Extreme{}(best, from[i * inner]);
    }
    best = team.join(best, Extreme{});
    const auto is_best = [&](T one) { return one == best || (one != one && best != best); };
    // The first place, or minus the last one.
    std::int64_t place = length;
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      const std::int64_t here = takes_last ? -i : i;
      if (is_best(from[i * inner]) && here < place) place = here;
    }
    place = team.join(place, Smaller{});
    if (team.rank == 0) y[row] = takes_last ? -place : place;
  }
};

template <class Extreme>
Kernel make(KernelRequest& request) {
  const AxisLoop loop = arg_reduce_loop(request);
  const bool takes_last = takes_last_index(request);
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const ArgReduce<T, Extreme> reduce{args.input<T>(0), args.output<std::int64_t>(), loop.axis,
                                       loop.inner, takes_last};
    start_rows(reduce, loop.outer * loop.inner, loop.axis, loop.inner == 1, stream);
  });
}

}  // namespace

void register_arg_reduce_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows", {{"ArgMax", make<Larger>}, {"ArgMin", make<Smaller>}});
}

}  // namespace graft
