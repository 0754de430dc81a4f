#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Whether a byte can name any element of the window, and the images have the axes of a kernel.
bool fits(const Node& pool) {
  constexpr std::int64_t kMostElements = 256;
  constexpr int kMostRank = 5;
  const std::optional<Shape> x = shape_of(pool.input(0));
  if (!pool.is("MaxPool") || pool.output(1) != nullptr || !x || x->rank() > kMostRank) return false;
  return Shape(pool.attributes.get_ints("kernel_shape")).size() <= kMostElements;
}

}  // namespace

bool keep_argmax(Graph& graph) {
  std::vector<Node*> pools;
  for (const auto& node : graph.nodes()) {
    if (fits(*node)) pools.push_back(node.get());
  }
  for (Node* const pool : pools) {
    Builder builder(graph, pool);
    Attributes attributes = pool->attributes;
    attributes.erase("storage_order");
    const Expr y = call_multi("MaxPoolWithArgmax", kInternalDomain, {builder.expr(pool->input(0))},
                              2, std::move(attributes))
                       .front();
    graph.replace_all_uses(pool->output(0), y.value());
    graph.remove(pool);
  }
  verify_in_debug(graph);
  return !pools.empty();
}

}  // namespace graft::passes
