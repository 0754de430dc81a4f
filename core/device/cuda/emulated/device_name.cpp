#include "core/device/cuda/cuda_device.h"

namespace graft {

std::string cuda_device_name(int) {
  return "cuda:emulated";
}

}  // namespace graft
