#include "core/ops/reduce/reduce_cuda.h"

#include <array>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/reduce/reduce.h"

namespace graft {
namespace {

struct Row {
  std::string_view op;
  ReductionKind reduction;
};
constexpr std::array kRows{
    Row{"ReduceSum", ReductionKind::sum},        Row{"ReduceMean", ReductionKind::mean},
    Row{"ReduceProd", ReductionKind::product},   Row{"ReduceMax", ReductionKind::largest},
    Row{"ReduceMin", ReductionKind::smallest},   Row{"ReduceL1", ReductionKind::l1},
    Row{"ReduceL2", ReductionKind::l2},          Row{"ReduceSumSquare", ReductionKind::sum_square},
    Row{"ReduceLogSum", ReductionKind::log_sum}, Row{"ReduceLogSumExp", ReductionKind::log_sum_exp},
};

/// Joins it with the last one if the two lie in memory as one axis. False if there are too many.
bool append(DeviceAxes& axes, std::int64_t dim, std::int64_t stride) {
  axes.size *= dim;
  if (dim == 1) return true;
  const int last = axes.count - 1;
  if (last >= 0 && axes.strides[last] == dim * stride) {
    axes.dims[last] *= dim;
    axes.strides[last] = stride;
    return true;
  }
  if (axes.count == DeviceAxes::kMost) return false;
  axes.dims[axes.count] = dim;
  axes.strides[axes.count++] = stride;
  return true;
}

Kernel make_reduction(KernelRequest& request) {
  const Shape& x = request.shape();
  const auto reduced = reduced_axes(request.node(), x.rank());
  const DType dtype = request.dtype();
  if (!reduced || (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::bf16)) return {};
  DeviceReduction reduction;
  reduction.dtype = dtype;
  for (const Row& row : kRows) {
    if (row.op == request.node().op_type()) reduction.reduction = row.reduction;
  }
  const std::vector<std::int64_t> strides = x.strides();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    DeviceAxes& axes = (*reduced)[at] ? reduction.reduced : reduction.kept;
    if (!append(axes, x[axis], strides[at])) return {};
  }
  reduction.choose();
  request.need_workspace(reduction.workspace_bytes());
  return [reduction, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    reduction.run(args.inputs[0], args.outputs[0], args.workspace, stream);
  };
}

}  // namespace

void register_reduce_cuda(KernelRegistry& registry) {
  for (const Row& row : kRows) {
    add_cuda_kernels(registry, "two_passes", {{row.op, make_reduction}});
  }
}

}  // namespace graft
