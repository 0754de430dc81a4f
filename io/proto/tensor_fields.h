#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

// The typed data fields of TensorProto (float_data, int32_data, ...): which type lies in which, and
// how it is packed. Source: the comments of onnx-ml.proto.

/// How many typed fields hold data.
int count_typed_fields(const pb::TensorProto& proto);

/// The one field for `dtype` has as many entries as `shape` needs, and no other has any.
/// Throws Error{model}.
void check_fields(const pb::TensorProto& proto, DType dtype, const Shape& shape,
                  std::string_view who);

/// Decodes the field of `dtype` into `bytes` and clears it. Not for strings.
/// Throws Error{model} if an entry does not fit the type.
void take_fields(pb::TensorProto& proto, DType dtype, std::string_view who,
                 std::span<unsigned char> bytes);

/// Encodes `count` elements into the field of `dtype`. Not for strings.
void put_fields(DType dtype, std::span<const unsigned char> bytes, std::int64_t count,
                pb::TensorProto& proto);

}  // namespace graft::onnx
