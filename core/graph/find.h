#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"

// How edits find what they are told of, and what depends on it.

namespace graft::edit {

using ValueSet = std::unordered_set<const Value*>;

/// Throws Error{argument} with the names that are close to `name`, else with the last values.
/// `who` starts the message.
[[noreturn]] void refuse_unknown(const Graph& graph, std::string_view who, std::string_view name);

/// The value of that name, or the first output of the only node of that name. Throws
/// Error{argument} if there is none, or if several nodes have the name.
Value* find_value(const Graph& graph, std::string_view who, std::string_view name);

/// What `outputs` are computed from, themselves included; `inputs` are not looked behind.
ValueSet needed_values(const Graph& graph, const ValueSet& inputs,
                       const std::vector<Value*>& outputs);

}  // namespace graft::edit
