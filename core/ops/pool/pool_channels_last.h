#pragma once

#include "core/ops/registry.h"

namespace graft {

/// Kernels of the pooling ops for channels-last images.
void register_channels_last_pools(KernelRegistry& registry);

}  // namespace graft
