#pragma once

#include <vector>

#include "core/device/cuda/convolution.h"

namespace graft::emulated {

/// All that were asked of the emulated library, each once: for tests that ask the real one.
std::vector<Convolution>& planned_convolutions();

}  // namespace graft::emulated
