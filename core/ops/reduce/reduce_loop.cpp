#include <algorithm>

#include "core/base/at.h"
#include "core/ops/reduce/reduce.h"

namespace graft {

ReduceLoop::ReduceLoop(const Shape& shape, const std::vector<bool>& reduced_axis) {
  struct Group {
    std::int64_t dim;
    bool is_reduced;
  };
  std::vector<Group> groups;  // kinds alternate
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced = at(reduced_axis, axis);
    if (shape[axis] == 1) continue;
    if (!groups.empty() && groups.back().is_reduced == is_reduced) {
      groups.back().dim *= shape[axis];
    } else {
      groups.push_back({shape[axis], is_reduced});
    }
  }
  if (!groups.empty() && !groups.back().is_reduced) {
    columns = groups.back().dim;
    groups.pop_back();
  }
  if (!groups.empty()) {
    rows = groups.back().dim;
    groups.pop_back();
  }
  std::int64_t stride = rows * columns;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    (group->is_reduced ? reduced : kept).push_back({group->dim, stride});
    (group->is_reduced ? slabs : outer) *= group->dim;
    stride *= group->dim;
  }
  std::ranges::reverse(kept);
  std::ranges::reverse(reduced);
}

}  // namespace graft
