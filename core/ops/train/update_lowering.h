#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft {

/// Where the states begin among the inputs of an update.
inline constexpr int kFirstState = 4;

// The updates in ops of ONNX (OpDef::lower): the formulas of update_cpu.cpp.

std::vector<Expr> lower_sgd(const Node& node, Builder& builder);
std::vector<Expr> lower_adam(const Node& node, Builder& builder);
std::vector<Expr> lower_rmsprop(const Node& node, Builder& builder);
std::vector<Expr> lower_adagrad(const Node& node, Builder& builder);
std::vector<Expr> lower_accumulate(const Node& node, Builder& builder);
std::vector<Expr> lower_assign(const Node& node, Builder& builder);

}  // namespace graft
