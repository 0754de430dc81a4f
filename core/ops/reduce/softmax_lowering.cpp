#include "core/ops/reduce/softmax_lowering.h"

#include "core/ops/f32_twin.h"
#include "core/ops/lowering.h"

namespace graft {

std::vector<Expr> lower_softmax_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr y = n.x(0);
  const Expr dy = n.x(1);
  return {y * (dy - reduce_sum(dy * y, {n.attributes().get_int("axis", -1)}, true))};
}

std::vector<Expr> lower_log_softmax_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr dy = n.x(1);
  return {dy - exp(n.x(0)) * reduce_sum(dy, {n.attributes().get_int("axis", -1)}, true)};
}

std::vector<Expr> lower_row_dot(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {reduce_sum(widened(n.x(0)) * widened(n.x(1)), {-1}, false)};
}

}  // namespace graft
