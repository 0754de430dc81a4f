#include "core/ops/pool/pool_lowering.h"

#include "core/ops/kernels/window_lowering.h"
#include "core/ops/lowering.h"
#include "core/ops/pool/pool_geometry.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

constexpr int kMostSpatialAxes = 3;

/// 1 over the elements that each window's average counts: [1,1,outputs...].
Expr shares(const LoweredNode& n, const Shape& y, const WindowAxes& axes) {
  require_small_table(n.node(), y.size(2, y.rank()));
  const WindowAxes counted = counted_axes(axes, n.flag("count_include_pad"));
  std::vector<double> numbers;
  for (std::int64_t d = 0; d < axes[0].output; ++d) {
    for (std::int64_t h = 0; h < axes[1].output; ++h) {
      for (std::int64_t w = 0; w < axes[2].output; ++w) {
        numbers.push_back(1.0 / (static_cast<double>(counted[0].taps_of_output(d).count()) *
                                 static_cast<double>(counted[1].taps_of_output(h).count()) *
                                 static_cast<double>(counted[2].taps_of_output(w).count())));
      }
    }
  }
  std::vector<std::int64_t> dims = y.dims();
  dims[0] = 1;
  dims[1] = 1;
  return n.constant(n.x(0).dtype(), Shape(std::move(dims)), numbers);
}

}  // namespace

/// ONNX's indices count the elements of the whole input.
std::vector<Expr> lower_max_pool_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(0);
  const Shape shape = x.shape();
  if (shape.size() == 0) return {n.full(x.dtype(), shape, 0.0)};
  const Shape all{n.x(1).shape().size()};
  const Expr indices = call_multi("MaxPool", "", {x}, 2, n.attributes())[1];
  const Expr dx = call(
      "ScatterElements",
      {n.full(x.dtype(), Shape{shape.size()}, 0.0), reshape(indices, all), reshape(n.x(1), all)},
      {{"reduction", "add"}});
  return {reshape(dx, shape)};
}

/// Each plane [1,outputs...] is spread by a window of ones.
std::vector<Expr> lower_average_pool_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Shape x(n.attributes().get_ints("shape"));
  const int spatial = x.rank() - 2;
  if (spatial > kMostSpatialAxes) return {};
  const Expr dy = n.x(0);
  if (x.size() == 0) return {n.full(dy.dtype(), x, 0.0)};
  const WindowAxes geometry = PoolGeometry(node, x).axes;
  const std::vector<WindowAxis> axes(geometry.end() - spatial, geometry.end());
  std::vector<std::int64_t> planes{x[0] * x[1], 1};
  std::vector<std::int64_t> window{1, 1};
  for (const WindowAxis& axis : axes) {
    planes.push_back(axis.output);
    window.push_back(axis.kernel);
  }
  const Expr each = reshape(dy * shares(n, dy.shape(), geometry), Shape(planes));
  const Expr dx = spread_windows(each, n.full(dy.dtype(), Shape(window), 1.0), 1, axes);
  return {reshape(dx, x)};
}

}  // namespace graft
