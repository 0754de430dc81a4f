#include "core/ops/move/col2im.h"

#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {

BlockGeometry::BlockGeometry(const Node& node, const std::vector<std::int64_t>& image,
                             const std::vector<std::int64_t>& block) {
  if (image.size() != block.size() || image.empty()) {
    fail(ErrorKind::shape, node.label(), ": image_shape has ", image.size(),
         " numbers, block_shape ", block.size(), ", wanted as many and at least 1");
  }
  const WindowAttributes window(node, block);
  for (int i = 0; i < window.rank(); ++i) {
    const std::int64_t size = at(image, i);
    if (size < 0) fail(ErrorKind::shape, node.label(), ": image_shape holds ", size);
    axes.push_back(window.axis(i, size));
    taps = checked_multiply(taps, axes.back().kernel);
    blocks = checked_multiply(blocks, axes.back().output);
  }
}

namespace {

using Ints = std::vector<std::int64_t>;

/// input: [N, C * taps, blocks].
void infer_col2im(InferContext& context) {
  context.require_rank(0, 3, 3);
  const DType dtype = context.dtype(0);
  const auto length = list_length(context, 1);
  list_length(context, 2);
  const auto image = context.constant_ints(1);
  const auto block = context.constant_ints(2);
  const SymShape* const x = context.shape(0);
  if (!length) return context.set_output(0, dtype);
  SymShape y = unknown_dims(checked_add(*length, 2));
  if (x != nullptr) y[0] = (*x)[0];
  for (std::size_t i = 0; image && i < image->size(); ++i) y[static_cast<int>(i) + 2] = (*image)[i];
  if (image && block) {
    const BlockGeometry g(context.node(), *image, *block);
    if (x != nullptr && (*x)[2].is_known() && (*x)[2].value() != g.blocks) {
      context.fail(ErrorKind::shape, "input is ", *x, ", wanted ", g.blocks, " blocks");
    }
    if (x != nullptr && (*x)[1].is_known()) {
      if ((*x)[1].value() % g.taps != 0) {
        context.fail(ErrorKind::shape, "input is ", *x, ": axis 1 is no multiple of ", g.taps);
      }
      y[1] = (*x)[1].value() / g.taps;
    }
  }
  context.set_output(0, dtype, std::move(y));
}

/// x: [N, C, image]; attribute block_shape.
void infer_im2col(InferContext& context) {
  const Ints block = context.attributes().get_ints("block_shape");
  context.require_rank(0, static_cast<int>(block.size()) + 2, static_cast<int>(block.size()) + 2);
  const SymShape* const x = context.shape(0);
  const auto known = x == nullptr ? std::nullopt : x->known();
  if (!known) return context.set_output(0, context.dtype(0), unknown_dims(3));
  const Ints image(known->begin() + 2, known->end());
  const BlockGeometry g(context.node(), image, block);
  context.set_output(0, context.dtype(0),
                     Shape{(*known)[0], checked_multiply((*known)[1], g.taps), g.blocks});
}

std::vector<Expr> col2im_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  attributes.set({"block_shape", to_int64(constant_of(g.node().input(2)))});
  return {call_internal("Im2Col", {g.dy()}, attributes)};
}

std::vector<Expr> im2col_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  const Shape x = g.x().shape();
  const Ints block = attributes.get_ints("block_shape");
  attributes.erase("block_shape");
  return {call("Col2Im",
               {g.dy(), constant_ints(g.builder(), Ints(x.begin() + 2, x.end())),
                constant_ints(g.builder(), block)},
               attributes)};
}

std::vector<Sample> col2im_samples() {
  return {
      {"apart", {{{1, 12, 4}}, ints({4, 6}), ints({2, 3})}, {{"strides", Ints{2, 3}}}},
      {"overlapping", {{{2, 8, 6}}, ints({3, 4}), ints({2, 2})}},
      {"window",
       {{{1, 4, 20}}, ints({5, 5}), ints({2, 2})},
       {{"pads", Ints{0, 1, 1, 0}}, {"dilations", Ints{2, 1}}, {"strides", Ints{1, 1}}}},
      {"line", {{{2, 6, 4}}, ints({6}), ints({3})}},
      {"volume", {{{1, 8, 4}}, ints({2, 3, 3}), ints({2, 2, 2})}},
      {"empty_batch", {{{0, 4, 4}}, ints({3, 3}), ints({2, 2})}},
  };
}

std::vector<Sample> im2col_samples() {
  const Ints two{2, 2};
  return {
      {"overlapping", {{{2, 2, 3, 4}}}, {{"block_shape", two}}},
      {"window",
       {{{1, 1, 5, 5}}},
       {{"block_shape", two}, {"pads", Ints{0, 1, 1, 0}}, {"dilations", Ints{2, 1}}}},
      {"volume", {{{1, 1, 2, 3, 3}}}, {{"block_shape", Ints{2, 2, 2}}}},
      {"strided", {{{1, 1, 5, 5}}}, {{"block_shape", two}, {"strides", Ints{2, 3}}}},
      {"empty_batch", {{{0, 2, 3, 4}}}, {{"block_shape", two}}},
  };
}

}  // namespace

/// Col2Im adds the elements of overlapping blocks up; Im2Col, its gradient, copies them.
void register_col2im(OpRegistry& registry) {
  std::vector<AttributeDef> attributes{{"dilations", AttributeType::integers},
                                       {"pads", AttributeType::integers},
                                       {"strides", AttributeType::integers}};
  registry.add({.name = "Col2Im",
                .since = {{18}},
                .inputs = {{"input"}, {"image_shape"}, {"block_shape"}},
                .outputs = {{"output"}},
                .attributes = attributes,
                .infer = infer_col2im,
                .backward = col2im_rule,
                .samples = col2im_samples});
  attributes.push_back({"block_shape", AttributeType::integers, true});
  registry.add({.name = "Im2Col",
                .domain = kInternalDomain,
                .inputs = {{"x"}},
                .outputs = {{"y"}},
                .attributes = attributes,
                .infer = infer_im2col,
                .backward = im2col_rule,
                .samples = im2col_samples});
}

}  // namespace graft
