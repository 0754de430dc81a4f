#pragma once

#include "core/graph/node.h"
#include "core/ops/op_def.h"

namespace graft {

/// How an output may share memory with an input by the row of the node's op: the first alias of
/// that kind; null when there is none.
const Alias* find_alias(const Node& node, int output, AliasKind kind);
const Alias* find_alias(const std::vector<Alias>& of_op, int output, AliasKind kind);

/// Whether the node only shows its input under another shape, so that no kernel runs for it.
bool is_view(const Node& node);

/// The value itself, or the one whose memory it shares through Reshape and other views.
const Value* origin(const Value* value);

/// Whether the node updates a variable.
bool updates_state(const Node& node);

}  // namespace graft
