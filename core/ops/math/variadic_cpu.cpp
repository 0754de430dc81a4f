#include <cstring>
#include <vector>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// y = combine(... combine(combine(x0, x1), x2) ..., xn): the first two inputs into the output,
/// then one input after the other. So the output may be in the memory of input 0 or 1 only.
/// `finish`, when given, is applied to the result. Empty without `combine`.
Kernel fold_kernel(const KernelRequest& request, const RunFunction& combine,
                   RunFunction finish = {}) {
  if (!combine) return {};
  const Shape& shape = request.output().shape;
  const std::size_t width = bytes_of(request.dtype(), 1);
  struct Turn {
    BroadcastLoop<2> loop;
    RunFunction run;
  };
  std::vector<Turn> turns;
  for (int i = 1; i < request.input_count(); ++i) {
    const Shape& left = i == 1 ? request.shape(0) : shape;
    turns.push_back({BroadcastLoop<2>(shape, {left, request.shape(i)}), combine});
  }
  if (turns.empty()) {
    turns.push_back({BroadcastLoop<2>(shape, {shape, shape}),
                     [width](std::int64_t count, std::span<const RunOperand> x, void* y) {
                       std::memmove(y, x[0].elements, static_cast<std::size_t>(count) * width);
                     }});
  }
  if (finish) turns.push_back({BroadcastLoop<2>(shape, {shape, shape}), std::move(finish)});
  return
      [turns = std::move(turns), step = static_cast<std::int64_t>(width)](const KernelArgs& args) {
        int right = 0;
        for (const Turn& turn : turns) {
          const auto* const left = right == 0 ? args.input<std::byte>(0) : args.output<std::byte>();
          ++right;
          turn.loop.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
            const auto* const x = args.input<std::byte>(right);
            const auto& steps = turn.loop.inner_steps();
            const std::array<RunOperand, 2> operands{
                {{left + from[0] * step, steps[0]},
                 {x == nullptr ? nullptr : x + from[1] * step, steps[1]}}};
            turn.run(count, operands, args.output<std::byte>() + offset * step);
          });
        }
      };
}

RunFunction make_addition(const KernelRequest& request) {
  return dispatch_binary(FloatTypes{}, request, [](auto a, auto b) { return a + b; });
}

/// NaN wins, as in NumPy and PyTorch.
Kernel make_max(KernelRequest& request) {
  return fold_kernel(request, dispatch_binary(NumericTypes{}, request, [](auto a, auto b) {
                       return a > b || a != a ? a : b;
                     }));
}

Kernel make_min(KernelRequest& request) {
  return fold_kernel(request, dispatch_binary(NumericTypes{}, request, [](auto a, auto b) {
                       return a < b || a != a ? a : b;
                     }));
}

Kernel make_sum(KernelRequest& request) {
  return fold_kernel(request, make_addition(request));
}

Kernel make_mean(KernelRequest& request) {
  const int count = request.input_count();
  const auto divide = [count]<class T>(T sum) { return sum / static_cast<T>(count); };
  return fold_kernel(request, make_addition(request),
                     dispatch_unary(FloatTypes{}, request, divide));
}

}  // namespace

void register_variadic_cpu(KernelRegistry& registry) {
  registry.add({.op = "Max", .name = "plain", .make = make_max});
  registry.add({.op = "Min", .name = "plain", .make = make_min});
  registry.add({.op = "Sum", .name = "plain", .make = make_sum});
  registry.add({.op = "Mean", .name = "plain", .make = make_mean});
}

}  // namespace graft
