#include "core/ops/move/move_lowering.h"

#include <numeric>

#include "core/base/at.h"
#include "core/ops/lowering.h"
#include "core/ops/move/slice.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// The order in which the axes [first, first + count) stand before all others.
Ints brought_forward(int rank, int first, int count) {
  Ints order;
  for (int axis = first; axis < first + count; ++axis) order.push_back(axis);
  for (int axis = 0; axis < rank; ++axis) {
    if (axis < first || axis >= first + count) order.push_back(axis);
  }
  return order;
}

Ints inverse(const Ints& order) {
  Ints result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    at(result, order[i]) = static_cast<std::int64_t>(i);
  }
  return result;
}

/// dy, whose axes from `axis` on are those of the indices, added up into zeros with an axis of
/// `size` elements in their place.
Expr scatter_along(const LoweredNode& n, const Expr& dy, const Expr& indices, int axis,
                   std::int64_t size) {
  const Ints order = brought_forward(dy.rank(), axis, indices.rank());
  const Expr updates = transpose(dy, order);
  Ints dims{size};
  for (int i = indices.rank(); i < dy.rank(); ++i) dims.push_back(updates.shape()[i]);
  const int rank = static_cast<int>(dims.size());
  const Expr data = n.full(dy.dtype(), Shape(std::move(dims)), 0.0);
  const Expr sum =
      call("ScatterND", {data, unsqueeze(indices, {-1}), updates}, {{"reduction", "add"}});
  return transpose(sum, inverse(brought_forward(rank, axis, 1)));
}

/// An axis of `dy` set into zeros, where a Slice took it from.
Expr spread_axis(const LoweredNode& n, const Expr& dy, int axis, std::int64_t size,
                 const AxisRange& range) {
  std::vector<double> positions;
  for (std::int64_t i = 0; i < range.count; ++i) {
    positions.push_back(static_cast<double>(range.start + i * range.step));
  }
  const Expr indices = n.constant(DType::i64, Shape{range.count, 1}, positions);
  const Ints order = brought_forward(dy.rank(), axis, 1);
  const Expr updates = transpose(dy, order);
  Ints dims = updates.shape().dims();
  dims[0] = size;
  const Expr data = n.full(dy.dtype(), Shape(std::move(dims)), 0.0);
  return transpose(call("ScatterND", {data, indices, updates}), inverse(order));
}

}  // namespace

std::vector<Expr> lower_gather_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {scatter_along(n, n.x(0), cast(n.x(1), DType::i64),
                        static_cast<int>(n.attributes().get_int("axis", 0)),
                        n.attributes().get_int("size", 0))};
}

std::vector<Expr> lower_gather_nd_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  if (n.attributes().get_int("batch_dims", 0) != 0) return {};
  const Shape shape(n.attributes().get_ints("shape"));
  return {call("ScatterND", {n.full(n.x(0).dtype(), shape, 0.0), n.x(1), n.x(0)},
               {{"reduction", "add"}})};
}

/// Axes taken element by element are padded at once, the others set into zeros one by one.
std::vector<Expr> lower_slice_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Shape shape(n.attributes().get_ints("shape"));
  Expr dx = n.x(0);
  const std::vector<AxisRange> ranges = slice_grad_ranges(node, dx.shape());
  Ints pads(2 * ranges.size(), 0);
  bool is_padded = false;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const AxisRange& range = ranges[i];
    const auto axis = static_cast<int>(i);
    if (range.step != 1) {
      dx = spread_axis(n, dx, axis, shape[axis], range);
      continue;
    }
    pads[i] = range.start;
    pads[ranges.size() + i] = shape[axis] - range.start - range.count;
    is_padded = is_padded || range.count != shape[axis];
  }
  return {is_padded ? call("Pad", {dx, constant_ints(builder, pads)}) : call("Identity", {dx})};
}

}  // namespace graft
