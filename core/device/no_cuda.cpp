#include "core/device/cuda_devices.h"

namespace graft {

std::vector<Device*> cuda_devices() {
  return {};
}

}  // namespace graft
