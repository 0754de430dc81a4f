// With z the normalized elements, s their 1 / deviation and u = dy * scale, every gradient is
// dx = s (u - mean(u) - z mean(u z)): means over what is normalized together, the first left out
// where no mean is taken off.
#include "core/ops/norm/norm_lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/lowering.h"
#include "core/ops/norm/batch_norm.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

Ints axes_between(int first, int last) {
  Ints axes(static_cast<std::size_t>(last - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

/// Sums over no axes are the elements themselves; ONNX's would be those over all.
Expr sum_over(const Expr& x, const Ints& axes, bool keep_dims) {
  return axes.empty() ? x : reduce_sum(x, axes, keep_dims);
}

/// Statistics of the channels (axis 1) of a batch.
class LoweredChannels {
 public:
  explicit LoweredChannels(const Shape& x) : shape_(x), count_(x.rank() > 1 ? x[1] : 1) {
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (axis != 1) axes_.push_back(axis);
    }
  }
  /// [C] as [1,C,1...].
  Expr spread(const Expr& v) const {
    Ints dims(static_cast<std::size_t>(shape_.rank()), 1);
    if (dims.size() > 1) dims[1] = count_;
    return reshape(v, Shape(std::move(dims)));
  }
  Expr sum(const Expr& v) const { return reshape(reduce_sum(v, axes_, false), {count_}); }
  /// 0 of no elements.
  Expr mean(const Expr& v) const { return sum(v) / std::max(1.0, elements()); }
  /// Elements of one channel.
  double elements() const {
    const std::int64_t count = count_ == 0 ? 0 : shape_.size() / count_;
    return static_cast<double>(count);
  }

 private:
  Shape shape_;
  std::int64_t count_;
  Ints axes_;
};

Expr clamped(const FusedActivation& activation, const Expr& y) {
  if (!activation.is_on) return y;
  const Expr raised = call("Max", {y, constant_like(y, static_cast<double>(activation.lower))});
  if (std::isinf(activation.upper)) return raised;
  return call("Min", {raised, constant_like(y, static_cast<double>(activation.upper))});
}

/// dy where the activation behind y lets it pass.
Expr passed(const FusedActivation& activation, const Expr& y, const Expr& dy) {
  if (!activation.is_on) return dy;
  const Expr zero = constant_like(dy, 0.0);
  const Expr lower = constant_like(y, static_cast<double>(activation.lower));
  if (activation.is_strict) return where(greater(y, lower), dy, zero);
  const Expr above = where(less(y, lower), zero, dy);
  if (std::isinf(activation.upper)) return above;
  return where(greater(y, constant_like(y, static_cast<double>(activation.upper))), zero, above);
}

/// What the rows from `axis` on are normalized by: z, s, and dx for a scale.
struct LoweredRows {
  LoweredRows(const LoweredNode& n, bool is_centered)
      : x(n.x(1)), axis(normalize_axis(n.attributes().get_int("axis", -1), x.rank(), "axis")) {
    const Ints axes = axes_between(axis, x.rank());
    const Expr centered = is_centered ? x - reduce_mean(x, axes, true) : x;
    const Expr variance = reduce_mean(centered * centered, axes, true);
    inv_std = reciprocal(sqrt(variance + n.number("epsilon", 1e-5F)));
    z = centered * inv_std;
    const Ints dims = x.shape().dims();
    const Shape row(Ints(dims.begin() + axis, dims.end()));
    const Expr u = n.x(0) * reshape(n.x(2), row);
    Expr inner = u - z * reduce_mean(u * z, axes, true);
    if (is_centered) inner = inner - reduce_mean(u, axes, true);
    dx = inner * inv_std;
  }
  /// The sum of `terms` over all rows, in the shape of the parameter.
  Expr sum(const Expr& terms, const Shape& parameter) const {
    return reshape(sum_over(terms, axes_between(0, axis), false), parameter);
  }

  Expr x;
  int axis;
  Expr inv_std{};
  Expr z{};
  Expr dx{};
};

}  // namespace

/// As in PyTorch the running variance takes in the unbiased one of the batch.
std::vector<Expr> lower_batch_norm_training(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(0);
  const LoweredChannels channels(x.shape());
  const BatchNormSettings settings(n.attributes());
  const Expr mean = channels.mean(x);
  const Expr centered = x - channels.spread(mean);
  const Expr variance = channels.mean(centered * centered);
  const Expr inv_std = reciprocal(sqrt(variance + settings.epsilon));
  const Expr z = centered * channels.spread(inv_std);
  const Expr y = z * channels.spread(n.x(1)) + channels.spread(n.x(2));
  std::vector<Expr> results{clamped(FusedActivation(n.attributes()), y), mean, inv_std};
  if (!n.has_x(3) || !n.has_x(4)) return results;
  const double count = channels.elements();
  if (count == 0) {
    for (const int running : {3, 4}) results.push_back(call("Identity", {n.x(running)}));
    return results;
  }
  const double unbiased = count > 1 ? count / (count - 1) : 0.0;
  const auto moved = [&](const Expr& running, const Expr& batch, double factor) {
    return running * settings.momentum +
           cast(batch, running.dtype()) * ((1.0 - settings.momentum) * factor);
  };
  results.push_back(moved(n.x(3), mean, 1.0));
  results.push_back(moved(n.x(4), variance, unbiased));
  return results;
}

std::vector<Expr> lower_batch_norm_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(0);
  const LoweredChannels channels(x.shape());
  const FusedActivation activation(n.attributes());
  const Expr scale = n.x(2);
  const Expr inv_std = n.x(4);
  const Expr z = (x - channels.spread(n.x(3))) * channels.spread(inv_std);
  Expr dy = n.x(1);
  if (activation.is_on) {
    dy = passed(activation, z * channels.spread(scale) + channels.spread(n.x(5)), dy);
  }
  const Expr dbias = channels.sum(dy);
  const Expr dscale = channels.sum(dy * z);
  const double count = channels.elements();
  const Expr inner = dy - channels.spread(dbias / count) - z * channels.spread(dscale / count);
  return {inner * channels.spread(scale * inv_std), dscale, dbias};
}

std::vector<Expr> lower_layer_norm_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const LoweredRows rows(n, true);
  const Shape parameter = n.x(2).shape();
  return {rows.dx, rows.sum(n.x(0) * rows.z, parameter), rows.sum(n.x(0), parameter)};
}

std::vector<Expr> lower_rms_norm_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const LoweredRows rows(n, false);
  return {rows.dx, rows.sum(n.x(0) * rows.z, n.x(2).shape())};
}

/// Groups of channels as rows [N,groups,...].
std::vector<Expr> lower_group_norm_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr x = n.x(1);
  const Shape shape = x.shape();
  const std::int64_t groups = n.attributes().get_int("num_groups", 1);
  const Shape rows{shape[0], groups, shape.size(1, shape.rank()) / groups};
  const Ints last{2};
  const LoweredChannels channels(shape);
  const Expr grouped = reshape(x, rows);
  const Expr centered = grouped - reduce_mean(grouped, last, true);
  const Expr variance = reduce_mean(centered * centered, last, true);
  const Expr inv_std = reciprocal(sqrt(variance + n.number("epsilon", 1e-5F)));
  const Expr z = centered * inv_std;
  const Expr dy = n.x(0);
  const Expr u = reshape(dy * channels.spread(n.x(2)), rows);
  const Expr inner = u - reduce_mean(u, last, true) - z * reduce_mean(u * z, last, true);
  return {reshape(inner * inv_std, shape), channels.sum(dy * reshape(z, shape)), channels.sum(dy)};
}

}  // namespace graft
