#include "core/runtime/input_slots.h"

#include <algorithm>
#include <cstring>

#include "core/runtime/memory_plan.h"

namespace graft {

InputSlots::InputSlots(std::span<const TensorSpec> inputs, Device& device) : device_(device) {
  bytes_ = aligned(sizeof(RunState));
  for (const TensorSpec& input : inputs) {
    offsets_.push_back(bytes_);
    bytes_ += aligned(bytes_of(input.dtype, input.shape.size()));
  }
  device_memory_ = Tensor::empty(DType::u8, {static_cast<std::int64_t>(bytes_)}, device);
  host_memory_ = device.allocate_host(bytes_);
  std::memset(host_memory_.get(), 0, bytes_);
}

void InputSlots::upload(std::span<const Tensor> inputs, const RunState& state) {
  std::memcpy(host_memory_.get(), &state, sizeof state);
  const auto is_here = [&](const Tensor& input) { return &input.device() == &device_; };
  const bool at_once = std::ranges::none_of(inputs, is_here);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_here(inputs[i])) {
      device_.copy_async(input(i), inputs[i].data(), inputs[i].bytes());
      continue;
    }
    const Tensor host = inputs[i].to(cpu());
    void* const staged = at(host_memory_.get(), offsets_[i]);
    if (host.bytes() > 0) std::memcpy(staged, host.data(), host.bytes());
    if (!at_once) device_.copy_async(input(i), staged, host.bytes());
  }
  device_.copy_async(device_memory_.data(), host_memory_.get(),
                     at_once ? bytes_ : sizeof(RunState));
}

}  // namespace graft
