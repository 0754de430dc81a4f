#include "core/device/device.h"

#include "core/base/error.h"
#include "core/device/cuda_devices.h"

namespace graft {

std::string_view name(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : "cuda";
}

const std::vector<Device*>& devices() {
  static const std::vector<Device*> all = [] {
    std::vector<Device*> found{&cpu()};
    for (Device* card : cuda_devices()) found.push_back(card);
    return found;
  }();
  return all;
}

Device& device(std::string_view name) {
  if (name == "auto") return cpu();
  std::string valid = "auto";
  for (Device* candidate : devices()) {
    if (candidate->name() == name) return *candidate;
    valid += ", " + candidate->name();
  }
  fail(ErrorKind::device, "unknown device '", name, "'; valid here: ", valid);
}

}  // namespace graft
