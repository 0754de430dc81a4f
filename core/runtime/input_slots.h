#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/device/device.h"
#include "core/ops/kernel.h"
#include "core/tensor/tensor.h"

namespace graft {

/// What a run brings to a device other than the CPU: the run's state and the inputs. They lie at
/// fixed addresses, where recorded work finds them.
class InputSlots {
 public:
  InputSlots(std::span<const TensorSpec> inputs, Device& device);

  void* input(std::size_t index) const { return at(device_memory_.data(), offsets_[index]); }
  const RunState* run_state() const { return static_cast<RunState*>(device_memory_.data()); }

  /// Gives the device the copies; by one, if all inputs lie on the host. The copies of the last
  /// run must be done.
  void upload(std::span<const Tensor> inputs, const RunState& state);

 private:
  static void* at(void* memory, std::size_t offset) {
    return static_cast<std::byte*>(memory) + offset;
  }

  Device& device_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
  Tensor device_memory_;
  std::shared_ptr<void> host_memory_;
};

}  // namespace graft
