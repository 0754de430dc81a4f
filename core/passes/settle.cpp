#include "core/base/limits.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {

void settle(Graph& graph) {
  const std::int64_t most =
      grown(limits().settled_nodes, limits().settled_share, graph.node_count());
  std::int64_t visits = 0;
  do {
    infer_shapes(graph);
    fold_constants(graph);
    visits += static_cast<std::int64_t>(graph.node_count());
  } while (visits <= most && choose_branches(graph));
  eliminate_dead(graph);
  verify_in_debug(graph);
}

}  // namespace graft::passes
