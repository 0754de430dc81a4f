#pragma once

#include <algorithm>

#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/onednn.h"

namespace graft {

/// What the three primitives of one convolution have in common.
struct ConvProblem {
  ConvProblem(const ConvGeometry& sizes, DType type, const Shape& x_shape, const Shape& w_shape,
              const Shape& y_shape)
      : geometry(sizes), dtype(type), x(x_shape), w(w_shape), y(y_shape) {
    if (geometry.rank <= 3) keep_axes();
    if (geometry.groups > 1) {
      std::vector<std::int64_t> dims{geometry.groups, geometry.outputs};
      dims.insert(dims.end(), w.begin() + 1, w.end());
      w = Shape(dims);
    }
  }

  /// oneDNN wants at least one element everywhere, and each window that fits.
  bool is_supported() const {
    return is_onednn_type(dtype) && geometry.rank <= 3 && geometry.is_complete && x.size() > 0 &&
           w.size() > 0 && y.size() > 0 && std::ranges::all_of(geometry.axes, has_short_windows);
  }

  /// Its kernels count positions along an axis, with padding and strides, in 32 bits.
  static bool has_short_windows(const WindowAxis& axis) {
    constexpr std::int64_t kMost = std::int64_t{1} << 28;
    return axis.extent() <= kMost && axis.stride <= kMost && axis.pad_begin <= kMost &&
           axis.pad_end <= kMost;
  }

  /// Fastest here by far: nhwc for all; the weight in the primitive's own layout.
  dnnl::convolution_forward::primitive_desc forward(
      bool has_bias, const dnnl::primitive_attr& attributes = onednn_attributes()) const {
    const auto bias = has_bias ? dense({y[1]}) : dnnl::memory::desc();
    return {onednn_engine(),
            dnnl::prop_kind::forward_training,
            dnnl::algorithm::convolution_direct,
            image(x),
            any(w),
            bias,
            image(y),
            strides,
            dilations,
            pads_begin,
            pads_end,
            attributes};
  }

  bool is_strided_depthwise() const {
    return geometry.groups > 1 && geometry.outputs == 1 &&
           std::ranges::any_of(strides, [](std::int64_t stride) { return stride > 1; });
  }

  /// Axes of one element, one tap and no padding are left out, but for one: what stands in one row
  /// [N,C,H,1] is seen as [N,C,H], whose positions oneDNN takes by blocks. It is the same memory.
  void keep_axes() {
    std::vector<std::int64_t> x_dims{x[0], x[1]};
    std::vector<std::int64_t> w_dims{w[0], w[1]};
    std::vector<std::int64_t> y_dims{y[0], y[1]};
    for (std::size_t i = 3 - static_cast<std::size_t>(geometry.rank); i < 3; ++i) {
      const WindowAxis& axis = geometry.axes[i];
      const bool is_last = i == 2 && strides.empty();
      const bool is_one = axis.input == 1 && axis.output == 1 && axis.kernel == 1 &&
                          axis.pad_begin == 0 && axis.pad_end == 0;
      if (is_one && !is_last) continue;
      x_dims.push_back(axis.input);
      w_dims.push_back(axis.kernel);
      y_dims.push_back(axis.output);
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
      pads_begin.push_back(axis.pad_begin);
      pads_end.push_back(axis.pad_end);
    }
    x = Shape(x_dims);
    w = Shape(w_dims);
    y = Shape(y_dims);
  }

  /// An operand of the problem's type in that layout.
  dnnl::memory::desc image(const Shape& shape, Layout layout = Layout::channels_last) const {
    return onednn_image(shape, layout, dtype);
  }
  dnnl::memory::desc dense(const Shape& shape) const { return onednn_dense(shape, dtype); }
  dnnl::memory::desc any(const Shape& shape) const { return onednn_any(shape, dtype); }

  ConvGeometry geometry;
  DType dtype;
  Shape x;
  Shape w;  // with a leading axis of groups if there are several
  Shape y;
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;
  dnnl::memory::dims pads_begin;
  dnnl::memory::dims pads_end;
};

inline ConvProblem problem_of(const KernelRequest& request, const Shape& x, const Shape& w,
                              const Shape& y) {
  return {ConvGeometry(request.node(), x, w, y), request.dtype(), x, w, y};
}

}  // namespace graft
