#include "core/ops/image/resize_lowering.h"

#include <numeric>

#include "core/base/at.h"
#include "core/ops/image/resize.h"
#include "core/ops/lowering.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// [outputs,inputs]: what each input gives to each output.
std::vector<double> matrix_of(const ResizeTable& table) {
  std::vector<double> matrix(static_cast<std::size_t>(table.output * table.input), 0.0);
  for (std::int64_t o = 0; o < table.output; ++o) {
    for (std::int64_t tap = 0; tap < table.taps; ++tap) {
      const std::int64_t i = at(table.first, o) + tap;
      const double weight = at(table.weights, tap * table.output + o);
      if (weight == 0) continue;  // its input may lie outside
      at(matrix, o * table.input + i) += weight;
    }
  }
  return matrix;
}

/// dy [..., outputs, ...] with `axis` multiplied by the matrix [outputs,inputs].
Expr multiply_axis(const Expr& dy, int axis, const Expr& matrix) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(dy.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(at(order, axis), order.back());
  return transpose(matmul(transpose(dy, order), matrix), order);
}

}  // namespace

std::vector<Expr> lower_resize_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Shape x(n.attributes().get_ints("shape"));
  const InferContext context(const_cast<Node&>(node));  // reads only
  const auto axes = resize_axes(context, x);
  if (!axes) return {};
  Expr dx = n.x(0);
  for (const ResizeAxis& axis : *axes) {
    const ResizeTable table = resize_table(node, axis);
    require_small_table(node, table.output, table.input);
    const Expr matrix = n.constant(dx.dtype(), Shape{table.output, table.input}, matrix_of(table));
    dx = multiply_axis(dx, axis.axis, matrix);
  }
  return {axes->empty() ? call("Identity", {dx}) : dx};
}

}  // namespace graft
