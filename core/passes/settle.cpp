#include "core/passes/pass.h"

namespace graft::passes {

void settle(Graph& graph) {
  infer_shapes(graph);
  fold_constants(graph);
  eliminate_dead(graph);
}

}  // namespace graft::passes
