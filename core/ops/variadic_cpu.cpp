#include <vector>

#include "core/ops/elementwise_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Runs `first`, then each of `rest` on its result.
Kernel in_sequence(Kernel first, std::vector<Kernel> rest) {
  if (rest.empty()) return first;
  return [first = std::move(first), rest = std::move(rest)](const KernelArgs& args) {
    first(args);
    for (const Kernel& kernel : rest) kernel(args);
  };
}

/// y = combine(... combine(combine(x0, x1), x2) ..., xn): the first two inputs into the output,
/// then one input after the other. So the output may be in the memory of input 0 or 1 only.
template <class T, class Combine>
Kernel fold_kernel(const KernelRequest& request, Combine combine) {
  if (request.input_count() == 1) return unary_kernel<T>(request, [](T x) { return x; });
  std::vector<Kernel> rest;
  for (int i = 2; i < request.input_count(); ++i) {
    rest.push_back([loop = BroadcastLoop<1>(request.output().shape, {request.shape(i)}), combine,
                    i](const KernelArgs& args) {
      loop.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
        T* const y = args.output<T>() + offset;
        detail::apply_broadcast_run(count, y, combine, {1, loop.inner_steps()[0]},
                                    std::make_index_sequence<2>{}, static_cast<const T*>(y),
                                    args.input<T>(i) + from[0]);
      });
    });
  }
  return in_sequence(broadcast_kernel<T, T, T>(request, combine), std::move(rest));
}

template <class Types, class Combine>
Kernel dispatch_fold(Types types, const KernelRequest& request, Combine combine) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = fold_kernel<T>(request, combine); });
  return kernel;
}

/// NaN wins, as in NumPy and PyTorch.
Kernel make_max(KernelRequest& request) {
  return dispatch_fold(NumericTypes{}, request,
                       [](auto a, auto b) { return a > b || a != a ? a : b; });
}

Kernel make_min(KernelRequest& request) {
  return dispatch_fold(NumericTypes{}, request,
                       [](auto a, auto b) { return a < b || a != a ? a : b; });
}

Kernel make_sum(KernelRequest& request) {
  return dispatch_fold(FloatTypes{}, request, [](auto a, auto b) { return a + b; });
}

Kernel make_mean(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    const std::int64_t size = request.output().shape.size();
    const T count = static_cast<T>(request.input_count());
    const Kernel divide = [size, count](const KernelArgs& args) {
      parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
        T* const y = args.output<T>() + first;
        detail::apply_run(
            last - first, y, [count](T sum) { return sum / count; }, detail::Operand<T, true>{y});
      });
    };
    kernel = in_sequence(fold_kernel<T>(request, [](T a, T b) { return a + b; }), {divide});
  });
  return kernel;
}

}  // namespace

void register_variadic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Max", .name = "plain", .make = make_max});
  registry.add({.op = "Min", .name = "plain", .make = make_min});
  registry.add({.op = "Sum", .name = "plain", .make = make_sum});
  registry.add({.op = "Mean", .name = "plain", .make = make_mean});
}

}  // namespace graft
