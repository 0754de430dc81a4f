#pragma once

#include <onnx/onnx_pb.h>

namespace graft::onnx {

/// The generated messages, in whatever namespace libonnx was built with.
namespace pb = ONNX_NAMESPACE;

}  // namespace graft::onnx
