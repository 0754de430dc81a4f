#pragma once

#include <string_view>

#include "core/tensor/tensor.h"
#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Values, indices and dims agree, and every index lies within dims. Throws Error{model};
/// Error{unsupported} if the data lies outside the model's file.
void check_sparse_tensor(const pb::SparseTensorProto& sparse, std::string_view who);

/// The dense tensor that a checked sparse one stands for. Throws Error{unsupported} for strings and
/// sub-byte types, or if it is out of proportion to what the file stores.
Tensor densify(const pb::SparseTensorProto& sparse, std::string_view who);

}  // namespace graft::onnx
