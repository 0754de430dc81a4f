#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The gradients of a convolution in ops of ONNX (OpDef::lower).

std::vector<Expr> lower_conv_input_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_conv_weight_grad(const Node& node, Builder& builder);

}  // namespace graft
