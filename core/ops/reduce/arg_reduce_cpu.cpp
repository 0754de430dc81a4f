#include <algorithm>
#include <array>

#include "core/base/at.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/reduce/arg_reduce.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Whether `candidate`, which stands later, replaces `best`.
template <bool kLargest, bool kLast, class T>
bool replaces(T candidate, T best) {
  if (best != best) return kLast && candidate != candidate;
  if (candidate != candidate) return true;
  if (kLast && candidate == best) return true;
  return kLargest ? candidate > best : candidate < best;
}

template <class T, bool kLargest, bool kLast>
Kernel arg_kernel(const AxisLoop& loop) {
  return [loop](const KernelArgs& args) {
    loop.for_each_tile([&](std::int64_t start, std::int64_t width) {
      const T* const x = args.input<T>(0) + start;
      std::int64_t* const y = args.output<std::int64_t>() + loop.reduced_offset(start);
      std::array<T, AxisLoop::kTile> best;
      std::copy_n(x, width, best.begin());
      std::fill_n(y, width, 0);
      for (std::int64_t i = 1; i < loop.axis; ++i) {
        const T* const row = x + i * loop.inner;
        for (std::int64_t j = 0; j < width; ++j) {
          const bool better = replaces<kLargest, kLast>(row[j], at(best, j));
          at(best, j) = better ? row[j] : at(best, j);
          y[j] = better ? i : y[j];
        }
      }
    });
  };
}

template <bool kLargest>
Kernel make(KernelRequest& request) {
  const AxisLoop loop = arg_reduce_loop(request);
  const bool last = takes_last_index(request);
  Kernel kernel;
  visit_kernel_dtype(NumericTypes{}, request.dtype(), [&]<class T>() {
    kernel = last ? arg_kernel<T, kLargest, true>(loop) : arg_kernel<T, kLargest, false>(loop);
  });
  return kernel;
}

}  // namespace

void register_arg_reduce_cpu(KernelRegistry& registry) {
  registry.add({.op = "ArgMax", .name = "plain", .make = make<true>});
  registry.add({.op = "ArgMin", .name = "plain", .make = make<false>});
}

}  // namespace graft
