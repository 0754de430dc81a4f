#include <vector>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// y = combine(... combine(combine(x0, x1), x2) ..., xn): the first two inputs into the output,
/// then one input after the other. So the output may be in the memory of input 0 or 1 only.
/// `finish`, when given, is applied to the result.
template <class T, class Combine>
Kernel fold_kernel(const KernelRequest& request, Combine combine, RunFunction finish = {}) {
  const Shape& shape = request.output().shape;
  struct Turn {
    BroadcastLoop<2> loop;
    RunFunction run;
  };
  std::vector<Turn> turns;
  const RunFunction combine_runs = run_function<T, T, T>(combine);
  for (int i = 1; i < request.input_count(); ++i) {
    const Shape& left = i == 1 ? request.shape(0) : shape;
    turns.push_back({BroadcastLoop<2>(shape, {left, request.shape(i)}), combine_runs});
  }
  if (turns.empty()) {
    turns.push_back(
        {BroadcastLoop<2>(shape, {shape, shape}), run_function<T, T>([](T x) { return x; })});
  }
  if (finish) turns.push_back({BroadcastLoop<2>(shape, {shape, shape}), std::move(finish)});
  return [turns = std::move(turns)](const KernelArgs& args) {
    int right = 0;
    for (const Turn& turn : turns) {
      const T* const left = right == 0 ? args.input<T>(0) : args.output<T>();
      ++right;
      turn.loop.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
        const T* const x = args.input<T>(right);
        const auto& steps = turn.loop.inner_steps();
        const std::array<RunOperand, 2> operands{
            {{left + from[0], steps[0]}, {x == nullptr ? nullptr : x + from[1], steps[1]}}};
        turn.run(count, operands, args.output<T>() + offset);
      });
    }
  };
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
    const T count = static_cast<T>(request.input_count());
    kernel = fold_kernel<T>(
        request, [](T a, T b) { return a + b; },
        run_function<T, T>([count](T sum) { return sum / count; }));
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
