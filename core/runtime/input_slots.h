#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/device/device.h"
#include "core/device/overlap.h"
#include "core/ops/kernel.h"
#include "core/tensor/tensor.h"

namespace graft {

/// What a run brings to a device other than the CPU: the run's state and the inputs. They lie at
/// fixed addresses, where recorded work finds them.
class InputSlots {
 public:
  InputSlots(std::span<const TensorSpec> inputs, Device& device);
  /// Waits until nothing reads its host memory.
  ~InputSlots();
  InputSlots(const InputSlots&) = delete;
  InputSlots& operator=(const InputSlots&) = delete;

  void* input(std::size_t index) const { return at(device_memory_.data(), offsets_[index]); }
  const RunState* run_state() const { return static_cast<RunState*>(device_memory_.data()); }

  /// Takes the memory that `upload_ahead` needs. Throws Error{memory}.
  void prepare_ahead();
  /// Gives the device the copies; by one, if all inputs lie on the host. All that it was given has
  /// to be done.
  void upload(std::span<const Tensor> inputs, const RunState& state);
  /// The same while it may be at earlier runs: the bytes travel beside them, and reach the slots
  /// when these are done. Inputs on the host may change as soon as this returns; where two uploads
  /// are on their way it waits for the older. After `prepare_ahead`.
  void upload_ahead(std::span<const Tensor> inputs, const RunState& state);

 private:
  /// Memory through which an upload passes.
  struct Stage {
    std::shared_ptr<void> host;
    Tensor device;
    std::unique_ptr<Event> arrived;  // on the device: the host's memory is free
    std::unique_ptr<Event> taken;    // to the slots: the device's is
  };

  static void* at(void* memory, std::size_t offset) {
    return static_cast<std::byte*>(memory) + offset;
  }
  bool is_here(const Tensor& input) const { return &input.device() == &device_; }
  void write(void* host, std::span<const Tensor> inputs, const RunState& state) const;
  /// Calls copy(offset, bytes) for what `write` wrote.
  template <class Copy>
  void for_each_piece(std::span<const Tensor> inputs, Copy copy) const;
  void copy_within_device(std::span<const Tensor> inputs);

  Device& device_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
  Tensor device_memory_;
  std::shared_ptr<void> host_memory_;
  std::array<Stage, 2> stages_;  // of `upload_ahead`, in turns
  std::size_t turn_ = 0;
};

}  // namespace graft
