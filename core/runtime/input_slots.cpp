#include "core/runtime/input_slots.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
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

InputSlots::~InputSlots() {
  for (const Stage& stage : stages_) {
    if (stage.arrived == nullptr) continue;
    stage.arrived->settle();
    stage.taken->settle();
  }
}

void InputSlots::write(void* host, std::span<const Tensor> inputs, const RunState& state) const {
  std::memcpy(host, &state, sizeof state);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_here(inputs[i]) || inputs[i].bytes() == 0) continue;
    const Tensor input = inputs[i].to(cpu());
    std::memcpy(at(host, offsets_[i]), input.data(), input.bytes());
  }
}

template <class Copy>
void InputSlots::for_each_piece(std::span<const Tensor> inputs, Copy copy) const {
  if (std::ranges::none_of(inputs, [this](const Tensor& input) { return is_here(input); })) {
    return copy(0, bytes_);
  }
  copy(0, sizeof(RunState));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_here(inputs[i])) copy(offsets_[i], inputs[i].bytes());
  }
}

void InputSlots::copy_within_device(std::span<const Tensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_here(inputs[i])) device_.copy_async(input(i), inputs[i].data(), inputs[i].bytes());
  }
}

void InputSlots::upload(std::span<const Tensor> inputs, const RunState& state) {
  write(host_memory_.get(), inputs, state);
  for_each_piece(inputs, [&](std::size_t offset, std::size_t bytes) {
    device_.copy_async(at(device_memory_.data(), offset), at(host_memory_.get(), offset), bytes);
  });
  copy_within_device(inputs);
}

void InputSlots::prepare_ahead() {
  Overlap& overlap = *find_overlap(device_);
  for (Stage& stage : stages_) {
    stage.host = device_.allocate_host(bytes_);
    std::memset(stage.host.get(), 0, bytes_);
    stage.device = Tensor::empty(DType::u8, {static_cast<std::int64_t>(bytes_)}, device_);
    stage.taken = overlap.make_event();
    stage.arrived = overlap.make_event();
  }
}

void InputSlots::upload_ahead(std::span<const Tensor> inputs, const RunState& state) {
  Stage& stage = stages_[turn_];
  turn_ = (turn_ + 1) % stages_.size();
  stage.arrived->wait();
  write(stage.host.get(), inputs, state);
  stage.taken->hold(Stream::uploads);
  for_each_piece(inputs, [&](std::size_t offset, std::size_t bytes) {
    find_overlap(device_)->upload(at(stage.device.data(), offset), at(stage.host.get(), offset),
                                  bytes);
  });
  stage.arrived->set(Stream::uploads);
  stage.arrived->hold(Stream::work);
  for_each_piece(inputs, [&](std::size_t offset, std::size_t bytes) {
    device_.copy_async(at(device_memory_.data(), offset), at(stage.device.data(), offset), bytes);
  });
  stage.taken->set(Stream::work);
  copy_within_device(inputs);
}

}  // namespace graft
