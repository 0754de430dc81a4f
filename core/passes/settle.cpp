#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {

void settle(Graph& graph) {
  do {
    infer_shapes(graph);
    fold_constants(graph);
  } while (choose_branches(graph));
  eliminate_dead(graph);
  verify_in_debug(graph);
}

}  // namespace graft::passes
