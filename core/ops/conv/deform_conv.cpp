#include "core/ops/builder.h"
#include "core/ops/f32_twin.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// Of X: [N,C,H,W], W: [M,C/group,kh,kw], offset: [N,offset_group*kh*kw*2,oh,ow].
struct DeformGeometry {
  DeformGeometry(const Node& node, const Shape& x, const Shape& w)
      : window(node, kernel_of(node, w)), taps(w[2] * w[3]) {
    group = node.attributes.get_int("group", 1);
    offset_group = node.attributes.get_int("offset_group", 1);
    if (group < 1 || offset_group < 1 || w[1] > kMostPerAxis || group > kMostPerAxis) {
      fail(ErrorKind::shape, node.label(), ": group is ", group, ", offset_group ", offset_group,
           ", wanted at least 1");
    }
    if (x[1] != w[1] * group || w[0] % group != 0 || x[1] % offset_group != 0) {
      fail(ErrorKind::shape, node.label(), ": x ", x, " and w ", w, " do not fit group ", group,
           " and offset_group ", offset_group);
    }
  }

  static std::vector<std::int64_t> kernel_of(const Node& node, const Shape& w) {
    const std::vector<std::int64_t> kernel{w[2], w[3]};
    const std::vector<std::int64_t> given = node.attributes.get_ints("kernel_shape", kernel);
    if (given != kernel) {
      fail(ErrorKind::shape, node.label(), ": kernel_shape differs from that of w, ", w);
    }
    return kernel;
  }

  WindowAttributes window;
  std::int64_t taps;
  std::int64_t group = 1;
  std::int64_t offset_group = 1;
};

void require_deform_conv_shape(const InferContext& context, int index, const Shape& wanted) {
  const SymShape* const found = context.shape(index);
  if (found == nullptr) return;
  context.require_rank(index, wanted.rank(), wanted.rank());
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if ((*found)[axis].is_known() && (*found)[axis].value() != wanted[axis]) {
      context.fail(ErrorKind::shape, "input '", context.input(index).name(), "' is ", *found,
                   ", wanted ", wanted);
    }
  }
}

void infer_deform_conv(InferContext& context) {
  context.require_rank(0, 4, 4);
  context.require_rank(1, 4, 4);
  context.require_rank(2, 4, 4);
  context.require_same_dtype({0, 1, 2, 3, 4});
  const DType dtype = context.dtype(0);
  if (context.shape(0) == nullptr || context.shape(1) == nullptr) {
    return context.set_output(0, dtype);
  }
  const auto x = context.shape(0)->known();
  const auto w = context.shape(1)->known();
  if (!x || !w) {
    const Dim channels = (*context.shape(1))[0];
    return context.set_output(0, dtype, SymShape{(*context.shape(0))[0], channels, Dim(), Dim()});
  }
  const DeformGeometry g(context.node(), *x, *w);
  const Shape y{(*x)[0], (*w)[0], g.window.axis(0, (*x)[2]).output,
                g.window.axis(1, (*x)[3]).output};
  const std::int64_t maps = checked_multiply(g.offset_group, g.taps);
  require_deform_conv_shape(context, 2, {y[0], checked_multiply(2, maps), y[2], y[3]});
  if (context.has_input(3)) require_deform_conv_shape(context, 3, {y[1]});
  if (context.has_input(4)) require_deform_conv_shape(context, 4, {y[0], maps, y[2], y[3]});
  context.set_output(0, dtype, y);
}

/// The elements that the taps along one axis read without offsets: taps by places of the output,
/// reshaped to `dims`.
Expr base_positions(const Expr& like, const WindowAxis& axis, const Shape& dims) {
  std::vector<double> values;
  for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
    for (std::int64_t o = 0; o < axis.output; ++o) {
      values.push_back(static_cast<double>(axis.position(o, tap)));
    }
  }
  const Tensor tensor = Tensor::from(dims, values).cast(like.dtype());
  return like.builder().expr(like.builder().constant(tensor));
}

/// Samples each tap of each window, then multiplies the columns with the weights. In f32 where
/// types have 16 bits, in which positions in an image have no room beside their fractions.
std::vector<Expr> expand_deform_conv(const Node& node, Builder& builder) {
  const auto input = [&](int i) {
    return node.input(i) == nullptr ? Expr() : widened(builder.expr(node.input(i)));
  };
  const Expr x = input(0);
  const Shape xs = x.shape();
  const Shape ws = input(1).shape();
  const Shape ys = node.output(0)->known_shape();
  const DeformGeometry g(node, xs, ws);
  const std::int64_t images = xs[0] * g.offset_group;
  const std::int64_t places = ys[2] * ys[3];
  const WindowAxis rows = g.window.axis(0, xs[2]);
  const WindowAxis columns = g.window.axis(1, xs[3]);

  require_small_table(node, ws[2], ys[2]);
  require_small_table(node, ws[3], ys[3]);
  const Expr offset = reshape(input(2), {images, ws[2], ws[3], 2, ys[2], ys[3]});
  const auto component = [&](int at) {
    const Expr one = call("Gather", {offset, constant_ints(builder, {at})}, {{"axis", 3}});
    return reshape(one, {images, ws[2], ws[3], ys[2], ys[3]});
  };
  const Expr down = component(0) + base_positions(x, rows, {1, ws[2], 1, ys[2], 1});
  const Expr right = component(1) + base_positions(x, columns, {1, 1, ws[3], 1, ys[3]});
  const Expr positions = call(
      "Concat",
      {reshape(right, {images, g.taps, places, 1}), reshape(down, {images, g.taps, places, 1})},
      {{"axis", 3}});
  Expr samples = call_internal(
      "PixelSample", {reshape(x, {images, xs[1] / g.offset_group, xs[2], xs[3]}), positions});
  if (input(4)) samples = samples * reshape(input(4), {images, 1, g.taps, places});
  const Expr parts = reshape(samples, {xs[0], g.group, ws[1] * g.taps, places});
  const Expr weights = reshape(input(1), {1, g.group, ws[0] / g.group, ws[1] * g.taps});
  const Expr y = reshape(matmul(weights, parts), ys);
  const Expr sum = input(3) ? y + reshape(input(3), {1, ws[0], 1, 1}) : y;
  return {cast(sum, node.input(0)->dtype())};
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> deform_conv_samples() {
  const SampleInput x{{2, 4, 5, 6}};
  const auto offset = [](const Shape& shape) {
    return SampleInput{.shape = shape, .low = -1.3, .high = 1.3, .distinct = true};
  };
  const SampleInput w{{6, 4, 2, 3}};
  const SampleInput bias{{6}};
  return {
      {"plain", {x, w, offset({2, 12, 4, 4})}},
      {"bias", {x, w, offset({2, 12, 4, 4}), bias}},
      {"mask", {x, w, offset({2, 12, 4, 4}), absent(), {.shape = {2, 6, 4, 4}}}},
      {"groups",
       {x, {{6, 2, 2, 3}}, offset({2, 24, 4, 4}), bias, {.shape = {2, 12, 4, 4}}},
       {{"group", 2}, {"offset_group", 2}}},
      {"window",
       {x, w, offset({2, 12, 3, 6})},
       {{"kernel_shape", Ints{2, 3}},
        {"pads", Ints{1, 2, 0, 2}},
        {"strides", Ints{2, 1}},
        {"dilations", Ints{1, 2}}}},
      {"empty_batch", {{{0, 4, 5, 6}}, w, offset({0, 12, 4, 4})}},
      {"one_channel", {{{1, 1, 3, 4}}, {{1, 1, 1, 2}}, offset({1, 4, 3, 3})}},
  };
}

}  // namespace

/// DeformConv (Dai et al. 2017, Zhu et al. 2019): bilinear samples, zero outside of the image.
void register_deform_conv(OpRegistry& registry) {
  registry.add(
      {.name = "DeformConv",
       .since = {{19}, {22, "bfloat16"}},
       .inputs = {{"X"}, {"W"}, {"offset"}, {"B", Arity::optional}, {"mask", Arity::optional}},
       .outputs = {{"Y"}},
       .attributes = {{"dilations", AttributeType::integers},
                      {"group", AttributeType::integer},
                      {"kernel_shape", AttributeType::integers},
                      {"offset_group", AttributeType::integer},
                      {"pads", AttributeType::integers},
                      {"strides", AttributeType::integers}},
       .infer = infer_deform_conv,
       .weights = {1, 3},
       .backward = Decomposition{expand_deform_conv},
       .samples = deform_conv_samples});
}

}  // namespace graft
