#pragma once

#include <string>

namespace graft {

/// The version of oneDNN that kernels are made with, and the instructions that it uses here:
/// "3.2.0, avx512_core"; empty in a build without it.
std::string onednn_description();

}  // namespace graft
