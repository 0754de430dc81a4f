#pragma once

#include <string_view>

#include "core/graph/value.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Element type and dims are ones that ONNX knows. `who` names the value in errors.
/// Throws Error{model}. A dim of -1 passes: exporters write it for an unknown one.
void check_type(const pb::TypeProto& proto, std::string_view who);

/// What the IR holds of a checked type. Dims of -1, "", "?" and "-1" are unknown.
ValueType to_value_type(const pb::TypeProto& proto);

/// Writes a tensor's type; denotations stay where the rank does. A container's type is left alone,
/// and an undefined element type clears the message.
void put_type(const ValueType& type, pb::TypeProto& proto);

}  // namespace graft::onnx
