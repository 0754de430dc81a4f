#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// The types of the graph outputs that inference finds, on a copy in the newest opset. Throws
/// Error{unsupported} if they depend on an op that Graft does not know, and as inference does.
std::vector<ValueType> inferred_output_types(const Model& model);

/// The types of all values of the model's graph, by name: what the file says and, where that is
/// open, what inference finds on a copy in the newest opset. Where inference stops, what it found
/// until then counts.
std::map<std::string, ValueType> value_types(const Model& model);

/// Gives the graph outputs what inference finds of their element types and of dims that neither a
/// number nor a name is known of: files want the types of outputs, and editing leaves them open.
/// Where inference stops at an op that Graft does not know, they stay as they are. Throws what
/// inference throws where the model's shapes do not fit: Error{shape}, naming the node, or others.
void complete_output_types(Model& model);

}  // namespace graft::edit
