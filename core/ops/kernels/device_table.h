#pragma once

#include <memory>
#include <vector>

#include "core/device/device.h"

namespace graft {

/// A table that a factory made, in memory of the device: kernels keep it, so that it lives as long
/// as they do.
template <class T>
std::shared_ptr<const T> device_table(Device& device, const std::vector<T>& table) {
  const std::size_t bytes = table.size() * sizeof(T);
  std::shared_ptr<void> memory(device.allocate(bytes),
                               [&device](void* own) { device.deallocate(own); });
  if (bytes > 0) device.copy_from_host(memory.get(), table.data(), bytes);
  return std::static_pointer_cast<const T>(memory);
}

}  // namespace graft
