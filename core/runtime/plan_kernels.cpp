#include "core/runtime/plan_kernels.h"

#include "core/ops/fallback.h"
#include "core/ops/through_f32.h"

namespace graft {

PreparedKernel PlanKernels::make(const Node& node) {
  if (device_.kind() == DeviceKind::cpu) return prepare_kernel(node, device_);
  PreparedKernel kernel = find_kernel(node, device_);
  if (!kernel.run) kernel = prepare_through_f32(node, device_);
  if (kernel.run) return kernel;
  if (fallback_ == Fallback::cpu) return prepare_fallback(node, device_);
  ++missing_[node.op_type()];
  return {};
}

void PlanKernels::refuse_missing() const {
  if (missing_.empty()) return;
  std::string list;
  for (const auto& [op, nodes] : missing_) {
    list += text(list.empty() ? "" : ", ", op, " (", nodes, nodes == 1 ? " node)" : " nodes)");
  }
  fail(ErrorKind::unsupported, "no ", device_.name(), " kernel for ", list,
       "; --fallback cpu (Fallback::cpu) runs them on the CPU");
}

}  // namespace graft
