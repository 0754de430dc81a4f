#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// Writes of ScatterElements and ScatterND.
enum class ScatterReduction { none, add, mul, max, min };

/// From the attribute `reduction`, which inference has checked.
ScatterReduction reduction_of(const KernelRequest& request);

/// As what numbers the data are combined: truth values as bytes, where nothing is added or
/// multiplied; of these 1 is the larger.
DType scattered_type(const KernelRequest& request);

}  // namespace graft
