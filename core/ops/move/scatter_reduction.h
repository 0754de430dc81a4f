#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// Writes of ScatterElements and ScatterND.
enum class ScatterReduction { none, add, mul, max, min };

/// From the attribute `reduction`, which inference has checked.
ScatterReduction reduction_of(const KernelRequest& request);

}  // namespace graft
