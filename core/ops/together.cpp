#include "core/ops/together.h"

#include <array>

namespace graft {
namespace {

TogetherHooks& hooks_of(DeviceKind kind) {
  static std::array<TogetherHooks, 2> all;
  return all[kind == DeviceKind::cpu ? 0 : 1];
}

}  // namespace

void set_together_hooks(DeviceKind kind, const TogetherHooks& hooks) {
  hooks_of(kind) = hooks;
}

Together::Together(Device& device) : device_(device) {
  if (const auto begin = hooks_of(device.kind()).begin; begin != nullptr) begin(device);
}

Together::~Together() {
  if (const auto end = hooks_of(device_.kind()).end; end != nullptr) end(device_);
}

}  // namespace graft
