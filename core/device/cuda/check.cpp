#include "core/device/cuda/check.h"

#include "core/base/error.h"

namespace graft {

void check_cuda(cudaError_t error, std::string_view device, std::string_view what) {
  if (error == cudaSuccess) return;
  const std::string why = cudaGetErrorString(error);
  cudaGetLastError();  // or the next call would report it again
  fail(error == cudaErrorMemoryAllocation ? ErrorKind::memory : ErrorKind::device, device, ": ",
       what, ": ", why);
}

}  // namespace graft
