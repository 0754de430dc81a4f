#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/kernels/window.h"

namespace graft {

/// The blocks that slide over an image, and where their elements lie in it.
struct BlockGeometry {
  /// `image` and `block` have one size a spatial axis; the rest are the node's attributes.
  /// Throws Error{shape} naming the node if they do not fit together.
  BlockGeometry(const Node& node, const std::vector<std::int64_t>& image,
                const std::vector<std::int64_t>& block);

  std::vector<WindowAxis> axes;
  std::int64_t taps = 1;    ///< elements of a block
  std::int64_t blocks = 1;  ///< in an image
};

}  // namespace graft
