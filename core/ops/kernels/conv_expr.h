#pragma once

#include "core/ops/expr.h"
#include "core/ops/infer.h"

namespace graft {

// The derivatives of convolutions as calls: rules of Conv, its internal ops and ConvTranspose.
// `attributes` are those of the Conv (strides, dilations, pads, auto_pad, group).

/// dx, of shape `x`.
Expr conv_input_grad(const Expr& dy, const Expr& w, const Attributes& attributes, const Shape& x);

/// dw, of shape `w`, and the bias gradient if wanted.
std::vector<Expr> conv_weight_grad(const Expr& x, const Expr& dy, const Attributes& attributes,
                                   const Shape& w, bool with_bias);

/// The convolution that an internal op is a derivative of. A transposed convolution may have used
/// fewer windows than fit: `y` is its shape and cuts the others off.
Expr conv_forward(const Expr& x, const Expr& w, Attributes attributes, const Shape& y);

/// Sums dy [N, C, ...] but for the channels.
Expr sum_but_channels(const Expr& dy);

/// Input `index`, if there, must be 1-d with `channels` elements.
void check_conv_bias(const InferContext& context, int index, const Dim& channels);

/// Output 0 of a convolution of input 0 with the weight that is input `weight`. Throws Error{shape}
/// if ranks, channels, groups or the attributes of the window do not fit.
void set_conv_output(InferContext& context, int weight, DType dtype);

/// The kernel's sizes from weight `w` and, where it does not know them, from kernel_shape; empty
/// when one is not known. Throws Error{shape} if both contradict, or if a size is 0.
std::vector<std::int64_t> conv_kernel(const InferContext& context, const SymShape& w);

}  // namespace graft
