#pragma once

#include <vector>

#include "core/ops/expr.h"
#include "core/ops/kernels/window.h"

namespace graft {

/// What windows along `axes` give back to their input, in ONNX's ConvTranspose: dy [N,M,outputs...]
/// by `weight` [M,C/group,kernel...] becomes [N,C,inputs...]. An input that no window reaches is 0.
Expr spread_windows(const Expr& dy, const Expr& weight, std::int64_t group,
                    const std::vector<WindowAxis>& axes);

}  // namespace graft
