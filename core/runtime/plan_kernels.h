#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/ops/kernel.h"

namespace graft {

/// Makes the kernels of a plan, and keeps in mind which ops have none, so that all are named at
/// once.
class PlanKernels {
 public:
  PlanKernels(Device& device, Fallback fallback) : device_(device), fallback_(fallback) {}

  /// Throws Error{unsupported} if the CPU has none. With an empty `run` if another device has none
  /// and there is no fallback. Nodes that are alike have one on the CPU: those of a deep model are
  /// of few kinds, and a plan runs them one after the other. The node must outlive this.
  std::shared_ptr<const PreparedKernel> make(const Node& node);

  /// Throws Error{unsupported} that lists the ops for which `make` found none.
  void refuse_missing() const;

 private:
  struct Made {
    const Node* node;
    std::shared_ptr<const PreparedKernel> kernel;
  };
  PreparedKernel make_on_card(const Node& node);

  Device& device_;
  Fallback fallback_;
  std::unordered_multimap<std::size_t, Made> made_;  // by alike_hash
  std::map<std::string, int> missing_;               // ops, and how many nodes
};

}  // namespace graft
