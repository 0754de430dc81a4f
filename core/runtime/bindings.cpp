#include "core/runtime/bindings.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/base/at.h"
#include "core/device/cuda_devices.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

constexpr std::uintptr_t kCardAlignment = 16;  // what kernels and libraries read at once

bool fits(const Tensor& given, const TensorSpec& want) {
  return given.dtype() == want.dtype && given.shape() == want.shape;
}

/// Where a card's kernels would read or write astray, it would be of no use any more.
void check_memory(std::string_view what, const Value& value, const Tensor& given) {
  const Device& device = given.device();
  if (device.kind() == DeviceKind::cpu || given.bytes() == 0) return;
  const auto excess = reinterpret_cast<std::uintptr_t>(given.data()) % kCardAlignment;
  if (excess != 0) {
    fail(ErrorKind::argument, what, " '", value.name(), "' starts ", excess,
         " bytes after a multiple of ", kCardAlignment, ", wanted a multiple: kernels of ",
         device.name(), " read so many at once");
  }
  if (!lies_on(device, given.data(), given.bytes())) {
    fail(ErrorKind::device, what, " '", value.name(), "' was said to lie on ", device.name(),
         ", but its ", given.bytes(), " bytes do not, or not all; give memory of that card");
  }
}

void check_one(std::string_view what, const Value& value, const Tensor& given,
               const TensorSpec& want, const Device* device) {
  if (!fits(given, want)) {
    fail(ErrorKind::shape, what, " '", value.name(), "' was planned as ",
         describe(want.dtype, want.shape), ", got ", describe(given));
  }
  if (device != nullptr && &given.device() != device) {
    fail(ErrorKind::device, what, " '", value.name(), "' lies on ", given.device().name(),
         ", the plan runs on ", device->name(), "; Tensor::to brings it there");
  }
  if (device != nullptr) check_memory(what, value, given);
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  const auto* const first = static_cast<const std::byte*>(a.data());
  const auto* const second = static_cast<const std::byte*>(b.data());
  return a.bytes() > 0 && b.bytes() > 0 && first < second + b.bytes() && second < first + a.bytes();
}

}  // namespace

Bindings::Bindings(const Graph& graph) : graph_(graph) {
  for (const Value* input : passes::required_inputs(graph)) {
    input_values_.push_back(input);
    input_specs_.push_back({input->dtype(), input->known_shape()});
  }
  for (const Value* output : graph.outputs()) {
    output_specs_.push_back({output->dtype(), output->known_shape()});
  }
  inputs_.resize(input_specs_.size());
  outputs_.resize(output_specs_.size());
}

bool Bindings::accepts(std::span<const Tensor> inputs) const {
  return std::ranges::equal(inputs, input_specs_, fits);
}

void Bindings::check_inputs(std::span<const Tensor> given, const Device* device) const {
  if (given.size() != input_specs_.size()) {
    fail(ErrorKind::argument, "the plan has ", input_specs_.size(), " inputs, got ", given.size());
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    check_one("input", *input_values_[i], given[i], input_specs_[i], device);
  }
}

void Bindings::check_outputs(std::span<const Tensor> given, std::span<const Tensor> inputs,
                             const Device* device) const {
  const std::vector<Value*>& outputs = graph_.outputs();
  if (given.size() != outputs.size()) {
    fail(ErrorKind::argument, "the plan has ", outputs.size(), " outputs, got ", given.size());
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    check_one("output", *outputs[i], given[i], output_specs_[i], device);
    const auto refuse_shared = [&](std::string_view what, const Value& other, const Tensor& with) {
      if (!share_bytes(given[i], with)) return;
      fail(ErrorKind::argument, "the tensor for output '", outputs[i]->name(),
           "' shares bytes with that for ", what, " '", other.name(),
           "'; give it memory of its own");
    };
    for (std::size_t k = 0; k < i; ++k) refuse_shared("output", *outputs[k], given[k]);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      refuse_shared("input", *input_values_[k], inputs[k]);
    }
  }
}

void Bindings::follow(std::size_t pointer, const Storage& storage) {
  if (storage.place == Storage::Place::input) {
    patches_.push_back({pointer, storage.place, storage.input_index});
  } else if (storage.place == Storage::Place::output) {
    patches_.push_back({pointer, storage.place, storage.output_index});
  }
}

void Bindings::bind(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                    std::span<void*> pointers) {
  std::ranges::transform(inputs, inputs_.begin(), &Tensor::data);
  std::ranges::transform(outputs, outputs_.begin(), &Tensor::data);
  for (const Patch& patch : patches_) {
    const auto& memory = patch.place == Storage::Place::input ? inputs_ : outputs_;
    pointers[patch.pointer] = at(memory, patch.index);
  }
}

void* Bindings::address(const Storage& storage) const {
  return storage.place == Storage::Place::input ? at(inputs_, storage.input_index)
                                                : at(outputs_, storage.output_index);
}

}  // namespace graft
