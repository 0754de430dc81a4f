#include "core/ops/kernels/window.h"

#include <algorithm>

namespace graft {
namespace {

/// Of a non-negative `a`.
std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

Span WindowAxis::outputs_of_tap(std::int64_t k) const {
  const std::int64_t offset = k * dilation - pad_begin;
  const std::int64_t first = offset >= 0 ? 0 : divide_up(-offset, stride);
  const std::int64_t room = input - 1 - offset;
  const std::int64_t last = room < 0 ? 0 : std::min(output, room / stride + 1);
  return {std::min(first, last), last};
}

std::vector<std::int64_t> checked_list(const Node& node, std::string_view name,
                                       std::vector<std::int64_t> found, int count,
                                       std::int64_t fallback, std::int64_t least) {
  if (found.empty()) found.assign(static_cast<std::size_t>(count), fallback);
  if (found.size() != static_cast<std::size_t>(count)) {
    fail(ErrorKind::shape, node.label(), ": ", name, " has ", found.size(), " numbers, wanted ",
         count);
  }
  for (const std::int64_t number : found) {
    if (number < least || number > kMostPerAxis) {
      fail(ErrorKind::shape, node.label(), ": ", name, " holds ", number, ", wanted ", least,
           " to ", kMostPerAxis);
    }
  }
  return found;
}

WindowAttributes::WindowAttributes(const Node& node, std::vector<std::int64_t> kernel)
    : node_(node) {
  const int count = static_cast<int>(kernel.size());
  kernel_ = checked_list(node, "kernel_shape", std::move(kernel), count, 1, 1);
  read(node);
}

WindowAttributes::WindowAttributes(const Node& node, int spatial_rank) : node_(node) {
  if (!node.attributes.has("kernel_shape")) {
    fail(ErrorKind::model, node.label(), ": attribute kernel_shape is missing");
  }
  std::vector<std::int64_t> kernel = node.attributes.get_ints("kernel_shape");
  if (kernel.empty()) fail(ErrorKind::shape, node.label(), ": kernel_shape is empty");
  kernel_ = checked_list(node, "kernel_shape", std::move(kernel), spatial_rank, 1, 1);
  read(node);
}

WindowAttributes::AutoPad WindowAttributes::read_auto_pad(const Node& node) {
  const std::string text = node.attributes.get_string("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::none;
  if (text == "VALID") return AutoPad::valid;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  fail(ErrorKind::model, node.label(), ": auto_pad is '", text,
       "', wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

void WindowAttributes::read(const Node& node) {
  const Attributes& from = node.attributes;
  auto_pad_ = read_auto_pad(node);
  ceil_mode_ = from.get_int("ceil_mode", 0) != 0;
  strides_ = checked_list(node, "strides", from.get_ints("strides"), rank(), 1, 1);
  dilations_ = checked_list(node, "dilations", from.get_ints("dilations"), rank(), 1, 1);
  pads_ = checked_list(node, "pads", from.get_ints("pads"), 2 * rank(), 0, 0);
  if (auto_pad_ != AutoPad::none) std::fill(pads_.begin(), pads_.end(), 0);
}

WindowAxis WindowAttributes::bare_axis(int index) const {
  const auto i = static_cast<std::size_t>(index);
  return {.kernel = kernel_[i],
          .stride = strides_[i],
          .dilation = dilations_[i],
          .pad_begin = pads_[i],
          .pad_end = pads_[i + kernel_.size()]};
}

WindowAxis WindowAttributes::axis(int index, std::int64_t input) const {
  WindowAxis axis = bare_axis(index);
  if (input > kMostPerAxis) {
    fail(ErrorKind::shape, node_.label(), ": spatial axis ", index, " has ", input,
         " elements, wanted at most ", kMostPerAxis);
  }
  axis.input = input;
  if (auto_pad_ == AutoPad::same_upper || auto_pad_ == AutoPad::same_lower) {
    axis.output = divide_up(input, axis.stride);
    const std::int64_t total =
        std::max<std::int64_t>(0, (axis.output - 1) * axis.stride + axis.extent() - input);
    const std::int64_t less = total / 2;
    axis.pad_begin = auto_pad_ == AutoPad::same_lower ? total - less : less;
    axis.pad_end = total - axis.pad_begin;
    return axis;
  }
  const std::int64_t room = input + axis.pad_begin + axis.pad_end - axis.extent();
  if (room < 0) {
    fail(ErrorKind::shape, node_.label(), ": a window of ", axis.extent(),
         " elements does not fit into spatial axis ", index, " of ", input, " + ",
         axis.pad_begin + axis.pad_end, " padded elements");
  }
  axis.output = room / axis.stride + 1;
  if (ceil_mode_ && auto_pad_ == AutoPad::none) {
    axis.output = divide_up(room, axis.stride) + 1;
    // A window that would start in the padding after the input is ignored.
    if ((axis.output - 1) * axis.stride >= input + axis.pad_begin) --axis.output;
  }
  return axis;
}

Dim WindowAttributes::output_dim(int index, const Dim& input) const {
  if (input.is_known()) return axis(index, input.value()).output;
  const WindowAxis bare = bare_axis(index);
  const bool is_same = auto_pad_ == AutoPad::same_upper || auto_pad_ == AutoPad::same_lower;
  const bool keeps = is_same || bare.extent() == 1 + bare.pad_begin + bare.pad_end;
  return bare.stride == 1 && keeps ? input : Dim();
}

Attributes with_shape(Attributes attributes, const Shape& shape) {
  attributes.set({"shape", shape.dims()});
  return attributes;
}

Attributes window_to_attributes(const std::vector<WindowAxis>& axes) {
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads;
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
    pads.push_back(axis.pad_begin);
  }
  for (const WindowAxis& axis : axes) pads.push_back(axis.pad_end);
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

}  // namespace graft
