#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

// The normalizations of a training step in ops of ONNX (OpDef::lower).

std::vector<Expr> lower_batch_norm_training(const Node& node, Builder& builder);
std::vector<Expr> lower_batch_norm_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_layer_norm_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_rms_norm_grad(const Node& node, Builder& builder);
std::vector<Expr> lower_group_norm_grad(const Node& node, Builder& builder);

}  // namespace graft
