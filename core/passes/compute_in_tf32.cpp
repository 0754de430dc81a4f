#include "core/ops/registry.h"
#include "core/ops/tf32.h"
#include "core/passes/pass.h"

namespace graft::passes {

bool compute_in_tf32(Graph& graph, Device& device) {
  if (device.kind() == DeviceKind::cpu) return false;
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    const OpDef* const def = OpRegistry::instance().find(*node);
    const bool is_product = def != nullptr && def->multiply_adds != nullptr;
    if (!is_product || node->output(0) == nullptr || node->output(0)->dtype() != DType::f32) {
      continue;
    }
    node->attributes.set({std::string(kTf32), 1});
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
