#pragma once

#include <string_view>

#include "core/tensor/tensor.h"
#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Type, dims and the amount of data agree, and data lies where it may. `who` names the tensor in
/// errors. Throws Error{model}, Error{io} for external data, Error{unsupported} for segments.
void check_tensor(const pb::TensorProto& proto, std::string_view who,
                  const ExternalReader& external);

/// Moves type, dims and elements of a checked tensor out of the message. What remains is for
/// `put_tensor`: an empty raw_data says that elements came as raw bytes (external ones too).
/// Bytes of a bool tensor other than 0 and 1 become 1.
Tensor take_tensor(pb::TensorProto& proto, std::string_view who, const ExternalReader& external);

/// A message for `put_tensor` without a past: raw bytes.
pb::TensorProto new_tensor_proto();

/// Writes type, dims and elements into what `take_tensor` left. A tensor on another device is
/// copied. `external` may be null.
void put_tensor(const Tensor& tensor, pb::TensorProto& proto, ExternalWriter* external = nullptr);

}  // namespace graft::onnx
