#pragma once

#include <filesystem>

#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Runs libonnx's checker on a model that passed `validate`: ops exist in the imported opset, with
/// the inputs, outputs and attributes that their schemas know; names are in single assignment form
/// across bodies; functions do not call themselves. Throws Error{model}.
///
/// What the checker refuses and runtimes accept, it is not asked: graphs without a name, graph
/// inputs and outputs without a shape, initializers that are no inputs under ir_version 3, ops
/// spelled with domain "ai.onnx". Ops of other domains than ONNX's own are not looked up.
void run_checker(pb::ModelProto& model, const std::filesystem::path& folder);

}  // namespace graft::onnx
