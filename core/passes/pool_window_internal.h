#pragma once

#include "core/passes/rewrite.h"

namespace graft::passes {

/// Whether the window of a MaxPool has at most so many elements, which a byte can name, and its
/// images have the axes of a kernel. Indices that are read stay.
inline bool has_small_window(const Node& pool, std::int64_t most_elements) {
  constexpr int kMostRank = 5;
  const std::optional<Shape> x = shape_of(pool.input(0));
  if (pool.output(1) != nullptr || !x || x->rank() > kMostRank) return false;
  return Shape(pool.attributes.get_ints("kernel_shape")).size() <= most_elements;
}

}  // namespace graft::passes
