#include "core/base/error.h"
#include "core/device/cuda/cuda_device.h"

namespace graft {

std::string cuda_device_name(int index) {
  return text("cuda:", index);
}

}  // namespace graft
