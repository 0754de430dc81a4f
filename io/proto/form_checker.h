#pragma once

#include <span>
#include <string_view>

#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Checks the model's nodes, and those of its bodies and functions, by lines as op_forms writes
/// them: inputs, outputs and attributes of each op of the standard in its opset. Throws
/// Error{unsupported} for an op that no line names, which is then said to be `missing`,
/// Error{model} for all else, naming the node.
void check_forms(const pb::ModelProto& model, std::span<const std::string_view> lines,
                 std::string_view missing);

}  // namespace graft::onnx
