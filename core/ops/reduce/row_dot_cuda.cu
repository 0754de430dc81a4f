#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {
namespace {

template <class T>
struct RowDot {
  const T* a;
  const T* b;
  T* y;
  std::int64_t length;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const double sum = team_sum(team, length, [&](std::int64_t i) {
      return static_cast<double>(a[row * length + i]) * static_cast<double>(b[row * length + i]);
    });
    if (team.rank == 0) y[row] = static_cast<T>(sum);
  }
};

Kernel make_row_dot(KernelRequest& request) {
  const Shape& a = request.shape();
  const std::int64_t length = a[a.rank() - 1];
  const std::int64_t rows = a.size(0, a.rank() - 1);
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    start_rows(RowDot<T>{args.input<T>(0), args.input<T>(1), args.output<T>(), length}, rows,
               length, true, stream);
  });
}

}  // namespace

void register_row_dot_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows", {{"RowDot", make_row_dot, kInternalDomain}});
}

}  // namespace graft
