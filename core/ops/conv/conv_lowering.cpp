#include "core/ops/conv/conv_lowering.h"

#include <algorithm>
#include <numeric>

#include "core/ops/kernels/window_lowering.h"
#include "core/ops/lowering.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// The windows over x [N,C,...] with a weight [M,C/group,kernel...].
std::vector<WindowAxis> window_axes(const Node& node, const Shape& x, const Shape& w) {
  const WindowAttributes window(node, Ints(w.dims().begin() + 2, w.dims().end()));
  std::vector<WindowAxis> axes;
  for (int i = 0; i < window.rank(); ++i) axes.push_back(window.axis(i, x[i + 2]));
  return axes;
}

/// 0, 1, ... with the first two exchanged.
Ints exchanged(int rank) {
  Ints order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return order;
}

/// x [N, group * c, ...] as [c, group * N, ...]: the channels of a group become the batch.
Expr channels_as_batch(const Expr& x, std::int64_t group) {
  const Shape shape = x.shape();
  const Ints spatial(shape.dims().begin() + 2, shape.dims().end());
  const std::int64_t channels = shape[1] / group;
  Ints split{shape[0], group, channels};
  Ints joined{channels, group * shape[0]};
  for (Ints* dims : {&split, &joined}) dims->insert(dims->end(), spatial.begin(), spatial.end());
  Ints order(split.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[2]);
  return reshape(transpose(reshape(x, Shape(split)), order), Shape(joined));
}

/// dw [M,c,kernel...] is a convolution of x by dy, in which stride and dilation have changed places
/// and so have batch and channels.
Expr weight_grad(const Expr& x, const Expr& dy, const Shape& w, std::int64_t group,
                 const std::vector<WindowAxis>& axes) {
  std::vector<WindowAxis> turned;
  bool has_rest = false;  // inputs behind the last window, from which the result has more taps
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const WindowAxis& axis = axes[i];
    const std::int64_t outputs = dy.shape()[static_cast<int>(i) + 2];
    const std::int64_t wanted = (outputs - 1) * axis.stride + axis.extent();
    const std::int64_t missing = wanted - axis.input - axis.pad_begin;
    turned.push_back({.stride = axis.dilation,
                      .dilation = axis.stride,
                      .pad_begin = axis.pad_begin,
                      .pad_end = std::max<std::int64_t>(0, missing)});
    has_rest = has_rest || -missing >= axis.dilation;
  }
  Attributes attributes = window_to_attributes(turned);
  attributes.set({"group", group});
  const Ints order = exchanged(dy.rank());
  Expr taps = call("Conv", {channels_as_batch(x, group), transpose(dy, order)}, attributes);
  if (has_rest) {
    const Ints kernel(w.dims().begin() + 2, w.dims().end());
    Ints spatial(kernel.size());
    std::iota(spatial.begin(), spatial.end(), 2);
    Builder& builder = x.builder();
    taps = call("Slice", {taps, constant_ints(builder, Ints(kernel.size(), 0)),
                          constant_ints(builder, kernel), constant_ints(builder, spatial)});
  }
  return transpose(taps, order);
}

}  // namespace

std::vector<Expr> lower_conv_input_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Shape x(n.attributes().get_ints("shape"));
  const Expr dy = n.x(0);
  const Expr w = n.x(1);
  const bool is_empty = x.size() == 0 || dy.shape().size() == 0;
  const Expr dx = is_empty ? n.full(dy.dtype(), x, 0.0)
                           : spread_windows(dy, w, n.attributes().get_int("group", 1),
                                            window_axes(node, x, w.shape()));
  return {n.has_x(2) ? dx + n.x(2) : dx};
}

std::vector<Expr> lower_conv_weight_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Shape w(n.attributes().get_ints("shape"));
  const Expr x = n.x(0);
  const Expr dy = n.x(1);
  const bool is_empty = x.shape().size() == 0 || dy.shape().size() == 0;
  const Expr dw = is_empty ? n.full(x.dtype(), w, 0.0)
                           : weight_grad(x, dy, w, n.attributes().get_int("group", 1),
                                         window_axes(node, x.shape(), w));
  if (!n.has_y(1)) return {dw};
  Ints axes(static_cast<std::size_t>(dy.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + 1);
  return {dw, reduce_sum(dy, axes, false)};
}

}  // namespace graft
