#include "tests/sweep/sample_layout.h"

#include <algorithm>
#include <cstring>

namespace graft::test {

Tensor relaid(const Tensor& tensor, Layout from, Layout to) {
  const Shape& shape = tensor.shape();
  const std::vector<std::int64_t> sources = layout_strides(shape, from);
  const std::vector<std::int64_t> targets = layout_strides(shape, to);
  const std::size_t width = bytes_of(tensor.dtype(), 1);
  Tensor result = Tensor::empty(tensor.dtype(), shape);
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t source = 0;
    std::int64_t target = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      source += rest % shape[axis] * sources[static_cast<std::size_t>(axis)];
      target += rest % shape[axis] * targets[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
    }
    std::memcpy(
        static_cast<std::byte*>(result.data()) + static_cast<std::size_t>(target) * width,
        static_cast<const std::byte*>(tensor.data()) + static_cast<std::size_t>(source) * width,
        width);
  }
  return result;
}

std::vector<Value*> images_of(const SampleGraph& built, const LayoutRule& rule) {
  const bool is_elementwise = rule.kind == LayoutRule::Kind::elementwise;
  std::vector<Value*> images;
  for (int i = 0; i < built.node->input_count(); ++i) {
    Value* const value = built.node->input(i);
    const bool is_listed = is_elementwise && rule.inputs.empty()
                               ? true
                               : std::ranges::find(rule.inputs, i) != rule.inputs.end();
    if (value == nullptr || !is_listed) continue;
    if (is_elementwise) {
      const Shape whole = built.node->output(0)->known_shape();
      const Shape operand = with_leading_ones(value->known_shape(), whole.rank());
      if (operand != whole && !is_layout_neutral(operand)) return {};
    }
    if (is_layout_neutral(value->known_shape())) continue;
    images.push_back(value);
  }
  for (int i = 0; i < built.node->output_count(); ++i) {
    Value* const value = built.node->output(i);
    if (value == nullptr || is_layout_neutral(value->known_shape())) continue;
    if (is_elementwise || std::ranges::find(rule.outputs, i) != rule.outputs.end()) {
      images.push_back(value);
    }
  }
  return images;
}

std::vector<Tensor> inputs_as_laid_out(const SampleGraph& built) {
  std::vector<Tensor> inputs = built.node_inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value* const input = built.node->input(static_cast<int>(i));
    if (input != nullptr) inputs[i] = relaid(inputs[i], Layout::row_major, input->layout);
  }
  return inputs;
}

bool lay_in_rows(SampleGraph& built, const LayoutRule& rule) {
  bool changes = false;
  for (Value* image : images_of(built, rule)) {
    changes = changes || image->layout != Layout::channels_last;
    image->layout = Layout::channels_last;
  }
  if (changes) built.node_inputs = inputs_as_laid_out(built);
  return changes;
}

}  // namespace graft::test
