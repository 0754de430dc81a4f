#pragma once

#include <cstddef>

#include "core/graph/node.h"

namespace graft {

/// Whether a kernel that looks at nothing else (KernelDef::serves_alike) serves both: the same op
/// with the same attributes, on operands of the same types, shapes and layouts, of which those that
/// are known before the run have few elements, the same ones.
bool are_alike(const Node& a, const Node& b);

/// The same number for nodes that are alike.
std::size_t alike_hash(const Node& node);

}  // namespace graft
