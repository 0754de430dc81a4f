#pragma once

#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Checks everything that building the IR relies on: imports, names (unique, defined, in scope),
/// attributes, types, dims, and that each tensor's bytes are there; bounds how deep graphs nest.
/// Sorts nodes of a graph that stand before the producers of their inputs, and keeps the order of
/// all others. Throws Error{model} naming node or value, and naming a cycle's nodes; Error{io} and
/// Error{unsupported} for data outside the file.
void validate(pb::ModelProto& model, const ExternalReader& external);

}  // namespace graft::onnx
