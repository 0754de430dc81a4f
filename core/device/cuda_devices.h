#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace graft {

/// The CUDA devices of this machine, or the emulated one; none in a build without CUDA, or where
/// no driver or no card is.
std::vector<Device*> cuda_devices();

/// What keeps this build or this machine from using a card, in one line; empty if nothing does.
std::string why_no_cuda();

/// Whether the first and the last of these bytes, one at least, lie in memory of that card.
bool lies_on(const Device& card, const void* memory, std::size_t bytes);

}  // namespace graft
