#pragma once

#include <map>
#include <string>

#include "core/ops/kernel.h"

namespace graft {

/// Makes the kernels of a plan, and keeps in mind which ops have none, so that all are named at
/// once.
class PlanKernels {
 public:
  PlanKernels(Device& device, Fallback fallback) : device_(device), fallback_(fallback) {}

  /// Throws Error{unsupported} if the CPU has none. With an empty `run` if another device has none
  /// and there is no fallback.
  PreparedKernel make(const Node& node);

  /// Throws Error{unsupported} that lists the ops for which `make` found none.
  void refuse_missing() const;

 private:
  Device& device_;
  Fallback fallback_;
  std::map<std::string, int> missing_;  // ops, and how many nodes
};

}  // namespace graft
