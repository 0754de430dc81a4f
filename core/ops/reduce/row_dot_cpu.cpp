#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/lanes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class T>
T dot(const T* x, const T* y, std::int64_t length) {
  T sum{};
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < length; ++i) sum += x[i] * y[i];
  return sum;
}
/// GCC 12 leaves a loop over bf16 scalar.
float dot(const BFloat16* x, const BFloat16* y, std::int64_t length) {
  constexpr int kLanes = kRegisterLanes;
  float sums[kLanes] = {};
  for_each_lanes(length, [&]<int lanes>(std::int64_t i) {
    store(sums, load<lanes>(sums) + load<lanes>(x + i) * load<lanes>(y + i));
  });
  float sum = 0.0F;
  for (const float part : sums) sum += part;
  return sum;
}

Kernel make_row_dot(KernelRequest& request) {
  const Shape& a = request.shape();
  const std::int64_t length = a[a.rank() - 1];
  const std::int64_t rows = a.size(0, a.rank() - 1);
  Kernel kernel;
  visit_kernel_dtype(TypeList<float, double, BFloat16>{}, request.dtype(), [&]<class T>() {
    kernel = [rows, length](const KernelArgs& args) {
      const std::int64_t grain = 16384 / std::max<std::int64_t>(1, length) + 1;
      parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
          using Sum = decltype(dot(args.input<T>(0), args.input<T>(1), length));
          args.output<Sum>()[row] =
              dot(args.input<T>(0) + row * length, args.input<T>(1) + row * length, length);
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
