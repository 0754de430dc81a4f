#include "core/ops/reduce/reduce_kernel.h"

namespace graft {
namespace {

/// bool is one byte of 0 or 1, ordered as a number.
template <template <class> class Op>
Kernel make_extreme(KernelRequest& request) {
  if (request.dtype() != DType::boolean) return reducing::make<Op, NumericTypes>(request);
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced) return {};
  if (request.shape().size() == 0 && request.output().shape.size() > 0) {
    const std::int64_t outputs = request.output().shape.size();
    return [outputs](const KernelArgs& args) {
      const bool empty_value = Op<int>::template identity<int>() > 0;
      std::fill_n(args.output<bool>(), outputs, empty_value);
    };
  }
  return reducing::reduce_kernel<Op<std::uint8_t>, std::uint8_t>(request, *reduced);
}

/// log(sum(exp(x - max))) + max: the maxima go to the output first and serve as shifts.
Kernel make_log_sum_exp(KernelRequest& request) {
  const Kernel largest = reducing::make<reducing::Max, FloatTypes>(request);
  const Kernel sum = reducing::make<reducing::LogSumExp, FloatTypes>(request);
  if (!largest || !sum) return {};
  return [largest, sum](const KernelArgs& args) {
    largest(args);
    sum(args);
  };
}

}  // namespace

void register_reduce_extreme_cpu(KernelRegistry& registry) {
  reducing::add_kernel(registry, "ReduceMax", make_extreme<reducing::Max>);
  reducing::add_kernel(registry, "ReduceMin", make_extreme<reducing::Min>);
  reducing::add_kernel(registry, "ReduceLogSumExp", make_log_sum_exp);
}

}  // namespace graft
