#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// Lets inference find the types of what is computed from a value anew, after that has changed:
/// those that the model records there would be of before. Throws what inference throws where shapes
/// do not fit. Where it stops at an op that Graft does not know, types become unknown.
void retype_behind(Model& model, const Value& value);

/// The type of a value of the graph, as recorded or, where that leaves a dim but the first open, as
/// inferred on a copy.
ValueType type_of(const Model& model, const Value& value);

/// Records what inference finds of the types of values whose element type is open. Throws
/// Error{argument} if there is no such value.
void infer_types_of(Model& model, const std::vector<std::string>& values);

}  // namespace graft::edit
