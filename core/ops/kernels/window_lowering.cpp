#include "core/ops/kernels/window_lowering.h"

#include <algorithm>

namespace graft {

Expr spread_windows(const Expr& dy, const Expr& weight, std::int64_t group,
                    const std::vector<WindowAxis>& axes) {
  std::vector<WindowAxis> cropped = axes;
  std::vector<std::int64_t> pads(2 * axes.size() + 4, 0);  // begins and ends of N, C, axes
  bool is_short = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const WindowAxis& axis = axes[i];
    const std::int64_t outputs = dy.shape()[static_cast<int>(i) + 2];
    const std::int64_t reach = (outputs - 1) * axis.stride + axis.extent();
    const std::int64_t missing = axis.pad_begin + axis.input - reach;
    cropped[i].pad_end = std::max<std::int64_t>(0, -missing);
    pads[axes.size() + 4 + i] = std::max<std::int64_t>(0, missing);
    is_short = is_short || missing > 0;
  }
  Attributes attributes = window_to_attributes(cropped);
  attributes.set({"group", group});
  const Expr dx = call("ConvTranspose", {dy, weight}, attributes);
  return is_short ? call("Pad", {dx, constant_ints(dy.builder(), pads)}) : dx;
}

}  // namespace graft
