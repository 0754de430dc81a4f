#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// The axes that input 1 gives new sizes.
std::vector<int> cropped_axes(const Node& node, int rank) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return unique_axes(node.attributes.get_ints("axes", axes), rank, node.label());
}

void infer_center_crop_pad(InferContext& context) {
  require_index_type(context, 1);
  const SymShape* const x = context.shape(0);
  const auto length = list_length(context, 1);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  const std::vector<int> axes = cropped_axes(context.node(), x->rank());
  if (length && *length != std::ssize(axes)) {
    context.fail(ErrorKind::shape, "shape has ", *length, " elements, wanted ", axes.size());
  }
  const auto sizes = context.constant_ints(1);
  SymShape y = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (sizes && (*sizes)[i] < 0) {
      context.fail(ErrorKind::shape, "shape holds ", (*sizes)[i], ", wanted at least 0");
    }
    y[axes[i]] = sizes ? Dim((*sizes)[i]) : Dim();
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

/// Pad cuts off where the amount is negative. Of an odd difference the end gets one more.
std::vector<Expr> expand_center_crop_pad(const Node& node, Builder& builder) {
  const Shape x = node.input(0)->known_shape();
  const Shape y = node.output(0)->known_shape();
  std::vector<std::int64_t> pads;
  for (int axis = 0; axis < x.rank(); ++axis) pads.push_back((y[axis] - x[axis]) / 2);
  for (int axis = 0; axis < x.rank(); ++axis) {
    pads.push_back(y[axis] - x[axis] - at(pads, axis));
  }
  return {call("Pad", {builder.expr(node.input(0)), constant_ints(builder, pads)})};
}

std::vector<Sample> center_crop_pad_samples() {
  const SampleInput x{{5, 4, 3}};
  return {
      {"crop", {x, ints({2, 3, 1})}},
      {"pad", {x, ints({8, 5, 4})}},
      {"both", {x, ints({2, 7, 3})}},
      {"axes", {x, ints({2, 6})}, {{"axes", std::vector<std::int64_t>{-1, 0}}}},
      {"to_nothing", {x, ints({0, 4, 3})}},
      {"of_nothing", {{{0, 4}}, ints({2, 3})}},
      {"one_row", {{{1, 4}}, ints({3, 1})}},
      {"integers", {{.shape = {3}, .low = -9, .high = 9, .dtype = DType::i64}, ints({6})}},
  };
}

}  // namespace

/// CenterCropPad: Pad by half of the difference on each side.
void register_center_crop_pad(OpRegistry& registry) {
  registry.add({.name = "CenterCropPad",
                .since = {{18}},
                .inputs = {{"input_data"}, {"shape"}},
                .outputs = {{"output_data"}},
                .attributes = {{"axes", AttributeType::integers}},
                .infer = infer_center_crop_pad,
                .backward = Decomposition{expand_center_crop_pad},
                .samples = center_crop_pad_samples});
}

}  // namespace graft
