#include "core/device/cuda_devices.h"

namespace graft {

std::vector<Device*> cuda_devices() {
  return {};
}

std::string why_no_cuda() {
  return "cuda: this build has none; see docs/gpu.md";
}

bool lies_on(const Device& /*card*/, const void* /*memory*/, std::size_t /*bytes*/) {
  return false;
}

}  // namespace graft
