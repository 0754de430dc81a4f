#pragma once

#include <algorithm>

#include "core/ops/kernel.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/kernel_dtypes.h"

namespace graft {

/// Rows of f32 channels, position by position.
inline bool lies_in_rows(const TensorSpec& image) {
  if (image.dtype != DType::f32) return false;
  return image.layout == Layout::channels_last || is_layout_neutral(image.shape);
}

/// Rows of bf16 channels, position by position.
inline bool lies_in_bf16_rows(const TensorSpec& image) {
  return is_kernel_dtype<BFloat16>(image.dtype) &&
         (image.layout == Layout::channels_last || is_layout_neutral(image.shape));
}

inline std::int64_t row_count(const ConvGeometry& geometry) {
  return geometry.batch * geometry.output_plane();
}

/// Of one group, with those that meet padding.
inline double multiply_adds(const ConvGeometry& geometry) {
  return static_cast<double>(row_count(geometry)) * static_cast<double>(geometry.taps()) *
         static_cast<double>(geometry.inputs) * static_cast<double>(geometry.outputs);
}

/// A product of matrices, one row a position.
inline bool is_pointwise(const ConvGeometry& geometry) {
  return geometry.groups == 1 && geometry.taps() == 1 &&
         std::ranges::all_of(geometry.axes, [](const WindowAxis& axis) {
           return axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
         });
}

}  // namespace graft
