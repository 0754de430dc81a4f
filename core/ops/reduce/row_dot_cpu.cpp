#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_row_dot(KernelRequest& request) {
  const Shape& a = request.shape();
  const std::int64_t length = a[a.rank() - 1];
  const std::int64_t rows = a.size(0, a.rank() - 1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [rows, length](const KernelArgs& args) {
      const std::int64_t grain = 16384 / std::max<std::int64_t>(1, length) + 1;
      parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
          const T* const x = args.input<T>(0) + row * length;
          const T* const y = args.input<T>(1) + row * length;
          T sum{};
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = 0; i < length; ++i) sum += x[i] * y[i];
          args.output<T>()[row] = sum;
        }
      });
    };
  });
  return kernel;
}

}  // namespace

void register_row_dot_cpu(KernelRegistry& registry) {
  registry.add({.op = "RowDot", .domain = kInternalDomain, .name = "rows", .make = make_row_dot});
}

}  // namespace graft
