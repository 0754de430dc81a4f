#include "core/device/cuda_devices.h"

namespace graft {

std::vector<Device*> cuda_devices() {
  return {};
}

std::string why_no_cuda() {
  return "cuda: this build has none; see docs/gpu.md";
}

}  // namespace graft
