#include "core/runtime/plan_kernels.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/ops/fallback.h"
#include "core/ops/through_f32.h"
#include "core/runtime/alike.h"

namespace graft {
namespace {

/// Attributes are not in the hash: thousands of nodes, each with a number of its own, would all be
/// compared with each other.
constexpr std::ptrdiff_t kMostOfOneHash = 8;

}  // namespace

std::shared_ptr<const PreparedKernel> PlanKernels::make(const Node& node) {
  if (device_.kind() != DeviceKind::cpu) {
    return std::make_shared<const PreparedKernel>(make_on_card(node));
  }
  const std::size_t hash = alike_hash(node);
  const auto [first, last] = made_.equal_range(hash);
  const auto known =
      std::find_if(first, last, [&](const auto& one) { return are_alike(*one.second.node, node); });
  if (known != last) return known->second.kernel;
  auto kernel = std::make_shared<const PreparedKernel>(prepare_kernel(node, device_));
  const bool has_room = std::distance(first, last) < kMostOfOneHash;
  if (has_room && kernel->serves_alike && are_alike(node, node)) {
    made_.emplace(hash, Made{&node, kernel});
  }
  return kernel;
}

PreparedKernel PlanKernels::make_on_card(const Node& node) {
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
