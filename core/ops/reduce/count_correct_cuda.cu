#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {
namespace {

using Count = unsigned long long;  // as atomicAdd has it

template <class T>
struct CountCorrect {
  const T* scores;
  const std::int64_t* target;
  Count* count;  ///< 0 before
  std::int64_t length;
  std::int64_t inner;
  std::int64_t ignored;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const T* const x = scores + row / inner * length * inner + row % inner;
    T best = x[0];
    for (std::int64_t i = team.rank; i < length; i += Team::size)
      best = Larger{}(best, x[i * inner]);
    best = team.join(best, Larger{});
    std::int64_t place = length;
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      const T one = x[i * inner];
      const bool is_best = one == best || (one != one && best != best);
      if (is_best && i < place) place = i;
    }
    place = team.join(place, Smaller{});
    // Whole numbers: their sum does not depend on the order.
    if (team.rank == 0 && place == target[row] && place != ignored) atomicAdd(count, Count{1});
  }
};

Kernel make_count_correct(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", 1));
  const std::int64_t rows = request.shape(1).size();
  const std::int64_t ignored = request.attributes().get_int("ignore_index", -1);
  CudaDevice* const device = &as_cuda(request.device());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    device->fill(args.outputs[0], 0, sizeof(Count));
    const CountCorrect<T> body{args.input<T>(0),     args.input<std::int64_t>(1),
                               args.output<Count>(), loop.axis,
                               loop.inner,           ignored};
    start_rows(body, rows, loop.axis, loop.inner == 1, stream);
  });
}

}  // namespace

void register_count_correct_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows", {{"CountCorrect", make_count_correct, kInternalDomain}});
}

}  // namespace graft
