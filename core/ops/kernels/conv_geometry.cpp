#include "core/ops/kernels/conv_geometry.h"

#include <algorithm>

#include "core/base/at.h"

namespace graft {

std::int64_t group_count(const Node& node, std::int64_t channels) {
  const std::int64_t groups = node.attributes.get_int("group", 1);
  if (groups < 1 || channels % groups != 0) {
    fail(ErrorKind::shape, node.label(), ": group ", groups, " does not divide ", channels,
         " channels");
  }
  return groups;
}

namespace {

std::vector<WindowAxis> conv_axes(const Node& node, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    fail(ErrorKind::shape, node.label(), ": input ", x, " and weight ", w,
         " must have one rank of at least 3");
  }
  const WindowAttributes window(node, {w.begin() + 2, w.end()});
  std::vector<WindowAxis> axes;
  for (int i = 0; i < window.rank(); ++i) axes.push_back(window.axis(i, x[i + 2]));
  return axes;
}

}  // namespace

ConvGeometry::ConvGeometry(const Node& node, const Shape& x, const Shape& w, const Shape& y)
    : ConvGeometry(node, x, w, y, conv_axes(node, x, w)) {}

ConvGeometry::ConvGeometry(const Node& node, const Shape& x, const Shape& w, const Shape& y,
                           const std::vector<WindowAxis>& spatial)
    : rank(x.rank() - 2) {
  if (y.rank() != x.rank()) {
    fail(ErrorKind::shape, node.label(), ": output ", y, " must have the rank of input ", x);
  }
  groups = group_count(node, w[0]);
  batch = x[0];
  inputs = w[1];
  outputs = w[0] / groups;
  if (y[0] != batch || y[1] != w[0] || x[1] != checked_multiply(inputs, groups)) {
    fail(ErrorKind::shape, node.label(), ": input ", x, ", weight ", w, " and output ", y,
         " do not fit together with group ", groups);
  }
  for (int i = 0; i < rank; ++i) {
    WindowAxis axis = at(spatial, i);
    if (y[i + 2] > axis.output) {
      fail(ErrorKind::shape, node.label(), ": output ", y, " has ", y[i + 2],
           " windows along spatial axis ", i, ", wanted at most ", axis.output);
    }
    is_complete = is_complete && y[i + 2] == axis.output;
    axis.output = y[i + 2];
    if (rank <= 3) at(axes, 3 - rank + i) = axis;
  }
}

std::vector<WindowAxis> transposed_axes(const Node& node, const std::vector<std::int64_t>& y,
                                        const std::vector<std::int64_t>& kernel) {
  using AutoPad = WindowAttributes::AutoPad;
  const WindowAttributes window(node, kernel);
  const int rank = window.rank();
  const Attributes& from = node.attributes;
  const auto added =
      checked_list(node, "output_padding", from.get_ints("output_padding"), rank, 0, 0);
  const auto wanted = checked_list(node, "output_shape", from.get_ints("output_shape"), rank, 0, 0);
  const AutoPad mode = window.auto_pad();
  const bool is_same = mode == AutoPad::same_upper || mode == AutoPad::same_lower;
  std::vector<WindowAxis> axes;
  for (int i = 0; i < rank; ++i) {
    const auto k = static_cast<std::size_t>(i);
    WindowAxis axis = window.bare_axis(i);
    if (y[k] < 1 || y[k] > kMostPerAxis) {
      fail(ErrorKind::shape, node.label(), ": spatial axis ", i, " has ", y[k],
           " elements, wanted 1 to ", kMostPerAxis);
    }
    // Stays below 2^63: every number is below 2^31.
    const std::int64_t natural = axis.stride * (y[k] - 1) + added[k] + axis.extent();
    if (from.has("output_shape") || is_same) {
      axis.input = from.has("output_shape") ? wanted[k] : y[k] * axis.stride;
      // A larger output than windows reach ends with elements that hold the bias alone.
      const std::int64_t total = std::max<std::int64_t>(0, natural - axis.input);
      axis.pad_begin = mode == AutoPad::same_upper ? total / 2 : total - total / 2;
      axis.pad_end = total - axis.pad_begin;
    } else {
      axis.input = natural - axis.pad_begin - axis.pad_end;
    }
    if (axis.input < 1 || axis.input > kMostPerAxis) {
      fail(ErrorKind::shape, node.label(), ": output of ", axis.input,
           " elements along spatial axis ", i, ", wanted 1 to ", kMostPerAxis);
    }
    const std::int64_t room = axis.input + axis.pad_begin + axis.pad_end - axis.extent();
    axis.output = std::max(y[k], room < 0 ? 0 : room / axis.stride + 1);
    axes.push_back(axis);
  }
  return axes;
}

ConvGeometry transposed_geometry(const Node& node, const Shape& x, const Shape& w, const Shape& y) {
  if (w.rank() < 3 || y.rank() != w.rank()) {
    fail(ErrorKind::shape, node.label(), ": input ", y, " and weight ", w,
         " must have one rank of at least 3");
  }
  const auto axes = transposed_axes(node, {y.begin() + 2, y.end()}, {w.begin() + 2, w.end()});
  return {node, x, w, y, axes};
}

}  // namespace graft
