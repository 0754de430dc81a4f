#pragma once

#include "core/device/device.h"

namespace graft {

/// While one exists, the kernels that are run are such that none reads or overwrites what another
/// writes, and none has a workspace; so a device may do in one launch what several of them ask for.
/// On devices without hooks it means nothing.
class Together {
 public:
  explicit Together(Device& device);
  ~Together();
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

 private:
  Device& device_;
};

/// How a kind of device takes kernels together: what runs between the two may wait for `end`.
struct TogetherHooks {
  void (*begin)(Device& device) = nullptr;
  void (*end)(Device& device) = nullptr;
};
void set_together_hooks(DeviceKind kind, const TogetherHooks& hooks);

}  // namespace graft
