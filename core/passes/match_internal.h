#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace graft::passes {

// Questions that passes ask about the neighbourhood of a value.

/// The node that alone reads the value, which is no output of the graph; null if there is none.
Node* only_reader(const Value* value);

/// The number of a one-element constant.
std::optional<double> scalar_of(const Value* value);

/// The value itself, or the one whose memory it shares through Reshape and other views.
const Value* origin(const Value* value);

/// Calls visit(node) for all nodes that read the memory of the value, through views too.
template <class Visit>
void for_each_memory_reader(const Value* value, const Visit& visit);

/// The node does not compute: its output is its input under another shape.
bool is_view(const Node& node);

template <class Visit>
void for_each_memory_reader(const Value* value, const Visit& visit) {
  for (const Use& use : value->uses()) {
    visit(*use.node);
    if (is_view(*use.node)) for_each_memory_reader(use.node->output(0), visit);
  }
}

}  // namespace graft::passes
