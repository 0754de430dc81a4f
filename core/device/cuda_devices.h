#pragma once

#include <vector>

#include "core/device/device.h"

namespace graft {

/// The CUDA devices of this machine, or the emulated one; none in a build without CUDA, or where
/// no driver or no card is.
std::vector<Device*> cuda_devices();

}  // namespace graft
