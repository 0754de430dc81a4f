#include "core/ops/kernels/conv_expr.h"

#include <algorithm>

#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/window.h"

namespace graft {

Expr conv_input_grad(const Expr& dy, const Expr& w, const Attributes& attributes, const Shape& x) {
  return call_internal("ConvInputGrad", {dy, w}, with_shape(attributes, x));
}

std::vector<Expr> conv_weight_grad(const Expr& x, const Expr& dy, const Attributes& attributes,
                                   const Shape& w, bool with_bias) {
  return call_multi("ConvWeightGrad", kInternalDomain, {x, dy}, with_bias ? 2 : 1,
                    with_shape(attributes, w));
}

Expr conv_forward(const Expr& x, const Expr& w, Attributes attributes, const Shape& shape) {
  attributes.erase("shape");
  const Expr y = call("Conv", {x, w}, attributes);
  if (y.shape() == shape) return y;
  const std::vector<std::int64_t> starts(static_cast<std::size_t>(shape.rank()), 0);
  return call("Slice",
              {y, constant_ints(y.builder(), starts), constant_ints(y.builder(), shape.dims())});
}

Expr sum_but_channels(const Expr& dy) {
  std::vector<std::int64_t> axes{0};
  for (int axis = 2; axis < dy.rank(); ++axis) axes.push_back(axis);
  return reduce_sum(dy, axes, false);
}

void check_conv_bias(const InferContext& context, int index, const Dim& channels) {
  if (!context.has_input(index)) return;
  context.require_same_dtype({0, index});
  context.require_rank(index, 1, 1);
  const SymShape* const shape = context.shape(index);
  if (shape == nullptr || !(*shape)[0].is_known() || !channels.is_known()) return;
  if ((*shape)[0].value() != channels.value()) {
    context.fail(ErrorKind::shape, "bias has ", (*shape)[0], " elements, wanted ", channels);
  }
}

std::vector<std::int64_t> conv_kernel(const InferContext& context, const SymShape& w) {
  const std::size_t rank = static_cast<std::size_t>(w.rank() - 2);
  std::vector<std::int64_t> sizes = context.attributes().get_ints("kernel_shape");
  if (!sizes.empty() && sizes.size() != rank) {
    context.fail(ErrorKind::shape, "kernel_shape has ", sizes.size(), " numbers, weight is ", w);
  }
  sizes.resize(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim& dim = w[static_cast<int>(i) + 2];
    if (!dim.is_known()) continue;
    if (sizes[i] != 0 && sizes[i] != dim.value()) {
      context.fail(ErrorKind::shape, "kernel_shape holds ", sizes[i], ", weight is ", w);
    }
    sizes[i] = dim.value();
    if (sizes[i] == 0) context.fail(ErrorKind::shape, "weight ", w, " has an empty kernel");
  }
  const bool is_known = std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  return is_known ? sizes : std::vector<std::int64_t>();
}

namespace {

void check_channels(const InferContext& context, const Dim& x, const Dim& w, std::int64_t groups) {
  if (!x.is_known() || !w.is_known()) return;
  if (x.value() != checked_multiply(w.value(), groups)) {
    context.fail(ErrorKind::shape, "input has ", x, " channels, weight wants ", w, " times group ",
                 groups);
  }
}

}  // namespace

void set_conv_output(InferContext& context, int weight, DType dtype) {
  const SymShape* const x = context.shape(0);
  const SymShape* const w = context.shape(weight);
  if (x == nullptr || w == nullptr) return context.set_output(0, dtype);
  context.require_rank(0, 3, 64);
  context.require_rank(weight, x->rank(), x->rank());
  const std::int64_t groups = group_count(context.node(), (*w)[0].is_known() ? (*w)[0].value() : 0);
  check_channels(context, (*x)[1], (*w)[1], groups);
  SymShape y = *x;
  y[1] = (*w)[0];
  const std::vector<std::int64_t> kernel = conv_kernel(context, *w);
  for (int i = 2; kernel.empty() && i < y.rank(); ++i) y[i] = Dim();
  if (!kernel.empty()) {
    const WindowAttributes window(context.node(), kernel);
    for (int i = 0; i < window.rank(); ++i) y[i + 2] = window.output_dim(i, (*x)[i + 2]);
  }
  context.set_output(0, dtype, y);
}

}  // namespace graft
