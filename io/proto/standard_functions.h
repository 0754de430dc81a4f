#pragma once

#include "core/graph/model.h"

namespace graft::onnx {

/// Fills `Model::standard_functions`: the body of every op in the model, and in those bodies, that
/// the ONNX standard defines by other ops alone. Bodies that depend on the types of a call are left
/// out. Source: the schemas of libonnx.
void attach_standard_functions(Model& model);

}  // namespace graft::onnx
