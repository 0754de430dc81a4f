#include <algorithm>

#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Every window holds elements of the image alone: none is empty, and padding, which never wins,
/// is not compared with what the Relu makes 0.
bool pools_without_padding(const Node& pool) {
  const Attributes& attributes = pool.attributes;
  const std::string padding = attributes.get_string("auto_pad", "NOTSET");
  return (padding == "NOTSET" || padding == "VALID") && attributes.get_int("ceil_mode", 0) == 0 &&
         std::ranges::all_of(attributes.get_ints("pads", {}),
                             [](std::int64_t pad) { return pad == 0; });
}

/// The Relu before the pooling, if it stands behind a convolution: what stands behind a
/// normalization becomes part of that.
Node* relu_before(const Node& pool) {
  if (!pool.is("MaxPool") || pool.output(1) != nullptr || !pools_without_padding(pool)) {
    return nullptr;
  }
  Node* const relu = pool.input(0)->producer();
  if (relu == nullptr || !relu->is("Relu") || only_reader(relu->output(0)) != &pool) return nullptr;
  const Node* const conv = relu->input(0)->producer();
  return conv != nullptr && conv->is("Conv") ? relu : nullptr;
}

}  // namespace

bool pool_before_relu(Graph& graph) {
  std::vector<Node*> pools;
  for (const auto& node : graph.nodes()) {
    if (relu_before(*node) != nullptr) pools.push_back(node.get());
  }
  for (Node* const pool : pools) {
    Node* const relu = relu_before(*pool);
    Builder builder(graph, pool);
    Node* const first = builder.node("MaxPool", "", {relu->input(0)}, 1, pool->attributes);
    Node* const second = builder.node("Relu", "", {first->output(0)}, 1);
    graph.replace_all_uses(pool->output(0), second->output(0));
    graph.remove(pool);
    graph.remove(relu);
  }
  verify_in_debug(graph);
  return !pools.empty();
}

}  // namespace graft::passes
