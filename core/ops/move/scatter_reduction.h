#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// Writes of ScatterElements and ScatterND.
enum class Reduction { none, add, mul, max, min };

/// From the attribute `reduction`, which inference has checked.
Reduction reduction_of(const KernelRequest& request);

}  // namespace graft
