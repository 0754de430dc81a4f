#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/ops/gradient.h"

namespace graft {

/// How a scattering op moves elements, with its own indices.
struct ScatterMoves {
  /// scatter(data, updates, reduction)
  std::function<Expr(const Expr&, const Expr&, std::string_view)> scatter;
  /// The elements of its operand at the places of the updates.
  std::function<Expr(const Expr&)> gather;
};

/// The gradients of y = scatter(data, indices, updates) by data and updates, for each reduction, as
/// of torch.scatter_reduce: none lets nothing through where data are overwritten, add all; max and
/// min share among those that attain the result; mul gives the product of the others.
std::vector<Expr> scatter_gradients(const Gradient& g, const ScatterMoves& moves);

}  // namespace graft
