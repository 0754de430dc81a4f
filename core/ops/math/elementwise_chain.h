#pragma once

#include <memory>

#include "core/graph/graph.h"
#include "core/ops/chain_limits.h"

namespace graft {

/// A copy of the chain's body in which the inputs have the types of the chain's, and all other
/// types follow. Throws Error{model} if the body is none of a chain, Error{shape} if the results of
/// its nodes, the links, differ in shape.
std::unique_ptr<Graph> typed_body(const Node& chain);

}  // namespace graft
