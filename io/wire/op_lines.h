#pragma once

#include <span>
#include <string_view>

namespace graft::onnx {

/// The lines `op ...` of GRAFT_MODELS, as op_forms writes them; made by CMake.
std::span<const std::string_view> op_lines();

}  // namespace graft::onnx
