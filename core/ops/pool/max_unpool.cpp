#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// The size of an axis that pooling made `pooled` long, without anything left over.
std::int64_t unpooled(const Node& node, const WindowAxis& axis, std::int64_t pooled) {
  if (pooled > kMostPerAxis) {
    fail(ErrorKind::shape, node.label(), ": an axis of ", pooled, " elements, wanted at most ",
         kMostPerAxis);
  }
  const std::int64_t size =
      pooled == 0 ? 0 : (pooled - 1) * axis.stride - axis.pad_begin - axis.pad_end + axis.kernel;
  if (size < 0) {
    fail(ErrorKind::shape, node.label(), ": pads ", axis.pad_begin, " and ", axis.pad_end,
         " leave nothing of an axis of ", pooled);
  }
  return size;
}

/// Indices count within this shape. https://onnx.ai/onnx/operators/onnx__MaxUnpool.html
SymShape unpooled_shape(const Node& node, const SymShape& x) {
  const WindowAttributes window(node, x.rank() - 2);
  SymShape y = x;
  for (int i = 0; i < window.rank(); ++i) {
    Dim& dim = y[i + 2];
    dim = dim.is_known() ? Dim(unpooled(node, window.bare_axis(i), dim.value())) : Dim();
  }
  return y;
}

void infer_max_unpool(InferContext& context) {
  context.require_rank(0, 3, 64);
  require_index_type(context, 1);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  const SymShape* const indices = context.shape(1);
  const auto known = x->known();
  if (indices != nullptr && known && indices->known() && *indices->known() != *known) {
    context.fail(ErrorKind::shape, "indices are ", *indices, ", wanted ", *x);
  }
  const SymShape least = unpooled_shape(context.node(), *x);
  if (!context.has_input(2)) return context.set_output(0, context.dtype(0), least);
  const auto length = list_length(context, 2);
  if (length && *length != x->rank()) {
    context.fail(ErrorKind::shape, "output_shape has ", *length, " elements, wanted ", x->rank());
  }
  const auto given = context.constant_ints(2);
  SymShape y = unknown_dims(x->rank());
  for (int axis = 0; given && axis < y.rank(); ++axis) {
    const std::int64_t size = at(*given, axis);
    const bool too_small = least[axis].is_known() && size < least[axis].value();
    const bool grows = axis < 2 && least[axis].is_known() && size != least[axis].value();
    if (size < 0 || too_small || grows) {
      context.fail(ErrorKind::shape, "output_shape has ", size, " in axis ", axis, ", wanted ",
                   axis < 2 ? "" : "at least ", least[axis]);
    }
    y[axis] = size;
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

/// Scatters into zeros; a larger output_shape adds zeros at the end of each axis.
std::vector<Expr> expand_max_unpool(const Node& node, Builder& builder) {
  const Expr x = builder.expr(node.input(0));
  const Shape y = node.output(0)->known_shape();
  const Shape least = *unpooled_shape(node, x.shape()).known();
  const auto line = [](const Expr& e) { return reshape(e, {e.shape().size()}); };
  const Expr zeros = expand(constant_like(x, 0.0), {least.size()});
  const Expr scattered =
      call("ScatterElements", {zeros, line(builder.expr(node.input(1))), line(x)});
  const Expr result = reshape(scattered, least);
  if (least == y) return {result};
  std::vector<std::int64_t> pads(static_cast<std::size_t>(y.rank()), 0);
  for (int axis = 0; axis < y.rank(); ++axis) pads.push_back(y[axis] - least[axis]);
  return {call("Pad", {result, constant_ints(builder, pads)})};
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> max_unpool_samples() {
  const auto indices = [](const Shape& shape, std::vector<double> values) {
    return SampleInput{.shape = shape, .values = std::move(values), .dtype = DType::i64};
  };
  const Attributes two{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const Shape small{1, 2, 2, 2};
  const SampleInput x{small};
  const SampleInput places = indices(small, {0, 3, 8, 15, 17, 18, 27, 30});
  return {
      {"plain", {x, places}, two},
      {"output_shape", {x, places, ints({1, 2, 5, 6})}, two},
      {"padded",
       {{{1, 1, 2}}, indices({1, 1, 2}, {1, 2})},
       {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 0}}}},
      {"volume",
       {{{1, 1, 1, 2, 1}}, indices({1, 1, 1, 2, 1}, {7, 8})},
       {{"kernel_shape", Ints{2, 2, 2}}, {"strides", Ints{2, 2, 2}}}},
      {"empty_batch", {{{0, 1, 2, 2}}, {.shape = {0, 1, 2, 2}, .dtype = DType::i64}}, two},
  };
}

}  // namespace

/// MaxUnpool: ScatterElements into zeros. Two elements with one index, which pooling with
/// overlapping windows gives: the last stays, as for ScatterElements.
void register_max_unpool(OpRegistry& registry) {
  registry.add({.name = "MaxUnpool",
                .since = {{9}, {11}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"I"}, {"output_shape", Arity::optional}},
                .outputs = {{"output"}},
                .attributes = {{"kernel_shape", AttributeType::integers, true},
                               {"pads", AttributeType::integers},
                               {"strides", AttributeType::integers}},
                .infer = infer_max_unpool,
                .backward = Decomposition{expand_max_unpool},
                .samples = max_unpool_samples});
}

}  // namespace graft
