#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {

void settle(Graph& graph) {
  infer_shapes(graph);
  fold_constants(graph);
  eliminate_dead(graph);
  verify_in_debug(graph);
}

}  // namespace graft::passes
