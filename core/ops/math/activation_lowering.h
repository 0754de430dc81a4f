#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The gradients of activations in ops of ONNX (OpDef::lower): the formulas of
// activation_*_cpu.cpp.

std::vector<Expr> lower_relu_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_leaky_relu_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_hard_swish_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_clip_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_sigmoid_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_tanh_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_gelu_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_swish_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_mish_grad(const Node& node, Builder& builder);

}  // namespace graft
