#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/node.h"

namespace graft {

/// Which axes a Reduce* node of newest form reduces, one flag an axis of its input of this rank;
/// nullopt when the axes are not known before the run.
/// Throws Error{shape} for an axis out of range or named twice.
std::optional<std::vector<bool>> reduced_axes(const Node& node, int rank);

/// `shape` with every reduced axis set to 1.
Shape keep_dims_shape(const Shape& shape, const std::vector<bool>& reduced);

/// A reduction as a loop nest: neighbouring axes of one kind are merged. Innermost stands a slab of
/// rows x columns contiguous elements, of which the rows are reduced; the axes above it are walked.
struct ReduceLoop {
  struct Axis {
    std::int64_t dim;
    std::int64_t stride;
  };

  ReduceLoop(const Shape& shape, const std::vector<bool>& reduced);

  /// Where slab `index` of those along `axes` starts.
  static std::int64_t offset(std::int64_t index, const std::vector<Axis>& axes) {
    std::int64_t result = 0;
    for (std::size_t i = axes.size(); i-- > 0;) {
      result += index % axes[i].dim * axes[i].stride;
      index /= axes[i].dim;
    }
    return result;
  }
  /// Elements that go into one output.
  std::int64_t length() const { return slabs * rows; }

  std::vector<Axis> kept{};     ///< outer axes of the output, outermost first
  std::vector<Axis> reduced{};  ///< outer axes that are summed out
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t outer = 1;  ///< product of kept
  std::int64_t slabs = 1;  ///< product of reduced
};

}  // namespace graft
