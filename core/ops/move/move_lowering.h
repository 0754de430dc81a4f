#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The gradients of ops that move elements, in ops of ONNX (OpDef::lower).

std::vector<Expr> lower_gather_grad(const Node& node, Builder& builder);
/// Empty where batch_dims are not 0.
std::vector<Expr> lower_gather_nd_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_slice_grad(const Node& node, Builder& builder);

}  // namespace graft
