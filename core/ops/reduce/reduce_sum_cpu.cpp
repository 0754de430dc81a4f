#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/reduce/reduce_kernel.h"

namespace graft {
namespace {

/// Sums of columns stored in bf16: by them biases train in mixed precision.
Kernel make_bf16_column_sums(KernelRequest& request) {
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced || !is_kernel_dtype<BFloat16>(request.dtype()) || request.shape().size() == 0)
    return {};
  const ReduceLoop loop(request.shape(), *reduced);
  if (loop.outer != 1 || loop.slabs != 1 || loop.columns == 1) return {};
  const ColumnSums sums(loop.rows, loop.columns);
  WorkspaceLayout layout;
  const std::size_t scratch = layout.reserve_bytes(sums.workspace_bytes());
  const std::size_t totals = layout.reserve<float>(loop.columns);
  request.need_workspace(layout.bytes());
  return [sums, scratch, totals, columns = loop.columns](const KernelArgs& args) {
    float* const y = workspace_at<float>(args, totals);
    sums.run(args.input<BFloat16>(0), y, workspace_at<std::byte>(args, scratch));
    convert_floats(y, columns, args.output<BFloat16>());
  };
}

}  // namespace

void register_reduce_sum_cpu(KernelRegistry& registry) {
  using namespace reducing;
  registry.add({.op = "ReduceSum",
                .name = "bf16_columns",
                .make = make_bf16_column_sums,
                .serves_alike = true});
  add_kernel(registry, "ReduceSum", make<Sum, MathTypes>);
  add_kernel(registry, "ReduceMean", make<Mean, MathTypes>);
}

}  // namespace graft
