#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

namespace graft::emulated {

/// Gives work to a stream, or to the graph that captures it. Nothing runs before somebody waits.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// What the last call that gave cudaErrorLaunchFailure was about.
const std::string& last_fault();

}  // namespace graft::emulated
