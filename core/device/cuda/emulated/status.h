#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

namespace graft::emulated {

/// Every call of the runtime holds one: threads of the process take turns.
class Guard {
 public:
  Guard();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Keeps an error for cudaGetLastError, and gives it back.
cudaError_t report(cudaError_t error);

/// While a stream is captured, calls that wait or allocate fail, as in the mode
/// cudaStreamCaptureModeThreadLocal.
bool forbids_waiting();

/// Runs what all streams hold.
cudaError_t run_all();

}  // namespace graft::emulated
