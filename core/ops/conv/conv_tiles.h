#pragma once

#include "core/ops/kernel.h"

namespace graft {

// Convolutions of f32 rows of channels by tiles of sums in registers, over what meets: padding
// costs nothing. Each is empty where oneDNN's convolutions are as fast.

/// Of Conv or ConvClamp, and of ConvInputGrad.
Kernel make_conv_by_tiles(KernelRequest& request);
Kernel make_conv_input_grad_by_tiles(KernelRequest& request);
/// Of ConvWeightGrad.
Kernel make_conv_weight_grad_by_tiles(KernelRequest& request);

}  // namespace graft
