#pragma once

#include "core/graph/verify.h"

namespace graft::passes {

/// What a pass calls when it is done: a broken invariant then shows where it was broken. Debug
/// builds only.
inline void verify_in_debug([[maybe_unused]] const Graph& graph) {
#if !defined(NDEBUG)
  verify(graph);
#endif
}

}  // namespace graft::passes
