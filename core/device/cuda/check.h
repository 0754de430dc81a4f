#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace graft {

/// Throws Error{memory} for want of memory, else Error{device} with CUDA's text, unless all is
/// well.
void check_cuda(cudaError_t error, std::string_view device, std::string_view what);

}  // namespace graft
