#pragma once

#include <filesystem>
#include <string_view>

#include "io/named_tensor.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Reads the bytes of a TensorProto, SequenceProto, OptionalProto or MapProto, whichever `type`
/// says; the bytes themselves do not tell. `folder` is where external data lies.
/// Throws as `load_tensor` does, and Error{unsupported} for sparse tensors.
NamedDatum parse_data(std::string_view bytes, const pb::TypeProto& type,
                      const std::filesystem::path& folder);

}  // namespace graft::onnx
