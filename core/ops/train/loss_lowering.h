#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The losses and their gradients in ops of ONNX (OpDef::lower). A label that is no class and not
// ignored counts for nothing there: their loss is not NaN.

std::vector<Expr> lower_cross_entropy(const Node& node, Builder& builder);
std::vector<Expr> lower_cross_entropy_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_nll_grad(const Node& node, Builder& builder);

}  // namespace graft
