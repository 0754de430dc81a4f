#include "core/ops/kernels/axis_loop.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"
#include "core/tensor/count_correct.h"

namespace graft {
namespace {

Kernel make_count_correct(KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", 1));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [loop, rows = request.shape(1).size(),
              ignored = request.attributes().get_int("ignore_index", -1)](const KernelArgs& args) {
      *args.output<std::int64_t>() = count_correct(args.input<T>(0), args.input<std::int64_t>(1),
                                                   rows, loop.axis, loop.inner, ignored);
    };
  });
  return kernel;
}

}  // namespace

/// In sequence: a step on the CPU counts what it has found itself (train/evaluator.h).
void register_count_correct_cpu(KernelRegistry& registry) {
  registry.add({.op = "CountCorrect",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_count_correct});
}

}  // namespace graft
