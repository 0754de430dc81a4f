#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The gradients of softmax, and products of rows, in ops of ONNX (OpDef::lower).

std::vector<Expr> lower_softmax_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_log_softmax_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_row_dot(const Node& node, Builder& builder);

}  // namespace graft
