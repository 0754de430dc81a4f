#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "io/file.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Protobuf's own limit for a message.
inline constexpr std::uint64_t kMaxMessageBytes = 0x7fffffff;

/// Fills `message` from `bytes`, all of them. Throws Error{model} that says whether the bytes end
/// early, go on after the end, or are no such message; `what` is "model", "tensor".
void parse_message(std::string_view bytes, std::string_view what, AnyMessage& message);
/// The same with all of a file; throws as File::read, too.
void parse_message(const File& file, std::string_view what, AnyMessage& message);

/// Reads back what `pack` made. Empty gives an empty message.
/// Throws Error{model}: only io writes these bytes, so they were damaged.
template <class Message>
Message unpack(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) fail(ErrorKind::model, "preserved fields are damaged");
  return message;
}

inline std::string pack(const AnyMessage& message) {
  return message.SerializeAsString();
}

}  // namespace graft::onnx
