#include "core/passes/pass.h"
#include "core/passes/pipeline.h"

namespace graft::passes {

bool settle(Graph& graph) {
  PassContext context{.device = cpu()};
  return run_passes(kSettle, graph, context);
}

}  // namespace graft::passes
