#pragma once

#include "core/graph/node.h"

namespace graft::passes {

/// Whether a standard op draws random numbers by a stream of its own: those of another run of it,
/// or of a copy, may differ. DropoutTraining draws by its attributes, so it is none.
inline bool is_random(const Node& node) {
  return node.op_type().rfind("Random", 0) == 0 || node.is("Bernoulli") || node.is("Multinomial") ||
         node.is("Dropout");
}

}  // namespace graft::passes
