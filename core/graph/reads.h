#pragma once

#include "core/graph/node.h"

namespace graft {

/// Whether the read hands the elements on as they are, but for their order, number, type and
/// rounding: a weight behind it is still a weight.
bool only_rearranges(const Use& use);

}  // namespace graft
