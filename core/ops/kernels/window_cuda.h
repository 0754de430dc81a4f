#pragma once

#include <simt.h>

#include "core/ops/kernels/window.h"

// WindowAxis on the device.
namespace graft::device_window {

/// The taps of output `o` that read inside the input.
__device__ inline Span taps_of_output(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t start = o * axis.stride - axis.pad_begin;
  const std::int64_t first = start >= 0 ? 0 : (axis.dilation - 1 - start) / axis.dilation;
  const std::int64_t room = axis.input - 1 - start;
  const std::int64_t reach = room < 0 ? 0 : room / axis.dilation + 1;
  const std::int64_t last = reach < axis.kernel ? reach : axis.kernel;
  return {first < last ? first : last, last};
}

/// The output that reads position `at` by tap `k`, or -1.
__device__ inline std::int64_t output_of_tap(const WindowAxis& axis, std::int64_t at,
                                             std::int64_t k) {
  const std::int64_t start = at + axis.pad_begin - k * axis.dilation;
  if (start < 0 || start % axis.stride != 0) return -1;
  const std::int64_t o = start / axis.stride;
  return o < axis.output ? o : -1;
}

/// Three numbers of one row-major index.
struct Place {
  std::int64_t depth;
  std::int64_t height;
  std::int64_t width;
};

__device__ inline Place place_of(std::int64_t index, std::int64_t height, std::int64_t width) {
  const std::int64_t row = index / width;
  return {row / height, row % height, index - row * width};
}

}  // namespace graft::device_window
