#pragma once

#include <cstdint>

#include "core/graph/node.h"

namespace graft {

/// The op id of a Dropout node, which has no attribute for it: a hash of its output's name.
std::uint64_t dropout_id(const Node& node);

}  // namespace graft
