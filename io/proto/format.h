#pragma once

#include <string_view>

#include "io/file.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

// Messages as bytes: by protobuf, or in a build with GRAFT_MODELS by io/wire.

/// Fills `message` from all of the bytes. False if they are no such message, or if messages nest
/// deeper than `depth`.
bool read_bytes(std::string_view bytes, int depth, AnyMessage& message);
/// The same with all of a file. protobuf never holds it as a whole, so that a model's elements are
/// in memory once before they become tensors. Throws as File::read.
bool read_bytes(const File& file, int depth, AnyMessage& message);

/// Writes the message to the end of the file. Throws Error{model} if it is too large for the
/// format, Error{io} as the file does.
void write_bytes(const AnyMessage& message, AtomicFile& file);

/// Throws Error{model} if the message is larger than the format allows.
void check_size(const AnyMessage& message);

}  // namespace graft::onnx
