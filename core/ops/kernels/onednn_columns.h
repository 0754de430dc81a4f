#pragma once

#include "core/ops/kernel.h"
#include "core/ops/kernels/conv_geometry.h"

namespace graft {

/// The gradient of a convolution's input by way of columns: for each image one product dy w gives
/// what each output hands to each tap and channel, [outputs, taps * channels], and these are added
/// up where they belong. A direct convolution fills vectors with channels of x; this fills them
/// with taps and channels, which is faster where those channels fill the last vector badly. Rows of
/// f32 channels. Empty where it is not the faster way.
Kernel input_grad_by_columns(KernelRequest& request, const ConvGeometry& geometry);

}  // namespace graft
