#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/node.h"

namespace graft {

/// Sizes of a Split node's outputs along a dim of `dim`; nullopt when they are an input that is not
/// known before the run. Throws Error{shape} if they do not add up, or if the dim cannot be split
/// evenly and num_outputs does not allow it to be uneven.
std::optional<std::vector<std::int64_t>> split_sizes(const Node& node, std::int64_t dim);

}  // namespace graft
