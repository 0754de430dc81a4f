#pragma once

#include <vector>

#include "core/ops/expr.h"

namespace graft::passes {

/// Lets the readers of the node's outputs read `parts`, one an output, and removes the node. A part
/// may be empty where nobody reads the output.
inline void replace_node(Graph& graph, Node* node, const std::vector<Expr>& parts) {
  for (int i = 0; i < node->output_count(); ++i) {
    Value* const output = node->output(i);
    if (output != nullptr && !output->is_unused()) {
      graph.replace_all_uses(output, parts.at(static_cast<std::size_t>(i)).value());
    }
  }
  graph.remove(node);
}

}  // namespace graft::passes
