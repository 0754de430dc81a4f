#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

/// ResizeGrad in ops of ONNX (OpDef::lower): along each axis a product with the matrix of Resize.
/// Empty where it depends on scales that are not known before the run.
std::vector<Expr> lower_resize_grad(const Node& node, Builder& builder);

}  // namespace graft
