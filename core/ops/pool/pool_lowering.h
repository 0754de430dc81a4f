#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The gradients of pooling in ops of ONNX (OpDef::lower), for 1 to 3 spatial axes.

std::vector<Expr> lower_max_pool_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_average_pool_grad(const Node& node, Builder& builder);

}  // namespace graft
