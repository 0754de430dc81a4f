#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/device/cuda_devices.h"
#include "core/device/device.h"
#include "core/ops/kernel_sets.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

std::string description_of(const Device& device) {
  if (device.kind() != DeviceKind::cpu) return device.description();
  return device.description() + "; kernels for " + describe_kernel_sets();
}

}  // namespace

Run add_devices(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "print a JSON line a device");
  return [as_json] {
    for (const Device* device : devices()) {
      const std::string description = description_of(*device);
      if (*as_json) {
        print_json({{"name", device->name()},
                    {"kind", std::string(name(device->kind()))},
                    {"description", description}});
      } else {
        std::cout << device->name() << "  " << description << "\n";
      }
    }
    const std::string why = why_no_cuda();
    if (!*as_json && !why.empty()) std::cout << why << "\n";
    return ok;
  };
}

}  // namespace graft::cli
