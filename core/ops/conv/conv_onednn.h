#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// The kernel "onednn" of Conv; empty for a case that it does not take.
Kernel make_conv_onednn(KernelRequest& request);

}  // namespace graft
