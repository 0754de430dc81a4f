#include "core/device/device.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/device/cuda_devices.h"

namespace graft {

std::string_view name(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : "cuda";
}

const std::vector<Device*>& devices() {
  static const std::vector<Device*>& all = *new std::vector<Device*>([] {  // as devices, to the end
    std::vector<Device*> found{&cpu()};
    for (Device* card : cuda_devices()) found.push_back(card);
    return found;
  }());
  return all;
}

Device& device(std::string_view name) {
  if (name == "auto") {
    const char* const chosen = std::getenv("GRAFT_DEVICE");
    const bool is_chosen = chosen != nullptr && *chosen != '\0' && chosen != name;
    return is_chosen ? device(chosen) : cpu();
  }
  if (name == "cpu") return cpu();  // without a look at cards
  const std::string_view wanted = name == "cuda" ? "cuda:0" : name;
  std::string valid = "auto";
  for (Device* candidate : devices()) {
    if (candidate->name() == wanted) return *candidate;
    valid += ", " + candidate->name();
  }
  const std::string why = wanted.starts_with("cuda") ? why_no_cuda() : std::string();
  fail(ErrorKind::device, "unknown device '", name, "'; valid here: ", valid,
       why.empty() ? "" : "; ", why);
}

}  // namespace graft
