#include "core/ops/kernels/strided.h"

namespace graft {

StridedCopy::StridedCopy(const std::vector<std::int64_t>& dims,
                         const std::vector<std::int64_t>& target_steps,
                         const std::vector<std::int64_t>& source_steps) {
  if (std::ranges::find(dims, 0) != dims.end()) {
    size_ = 0;
    return;
  }
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Axis axis{dims[i], target_steps[i], source_steps[i]};
    size_ *= axis.dim;
    if (axis.dim == 1) continue;
    if (!axes.empty() && axes.back().target == axis.target * axis.dim &&
        axes.back().source == axis.source * axis.dim) {
      axes.back() = {axes.back().dim * axis.dim, axis.target, axis.source};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  inner_ = axes.back();
  axes.pop_back();
  if (axes.empty()) return;
  auto middle = axes.end() - 1;
  if (inner_.target == 1 && inner_.source > 1) {
    const auto contiguous = std::ranges::find(axes, 1, &Axis::source);
    crosses_ = contiguous != axes.end();
    if (crosses_) middle = contiguous;
  }
  middle_ = *middle;
  axes.erase(middle);
  outer_ = std::move(axes);
  for (const Axis& axis : outer_) outer_count_ *= axis.dim;
}

}  // namespace graft
