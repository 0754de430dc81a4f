#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/ops/kernel.h"
#include "core/runtime/storage.h"
#include "core/tensor/tensor.h"

namespace graft {

/// What of a plan lies where its caller says: inputs and, if the plan binds them, outputs.
class Bindings {
 public:
  /// Of a graph of known shapes, which outlives it.
  explicit Bindings(const Graph& graph);

  const std::vector<TensorSpec>& input_specs() const { return input_specs_; }
  bool accepts(std::span<const Tensor> inputs) const;

  /// Throw Error{argument}, Error{shape} or Error{device} if these are not what was planned.
  /// `device`: where they must lie; null: anywhere. There a card must be able to use the memory. An
  /// output must share no byte with the others or with an input.
  void check_inputs(std::span<const Tensor> given, const Device* device) const;
  void check_outputs(std::span<const Tensor> given, std::span<const Tensor> inputs,
                     const Device* device) const;

  /// From now on pointer number `pointer` is where that storage is, if that lies with the caller.
  void follow(std::size_t pointer, const Storage& storage);
  /// Moves the pointers that follow these tensors, which have been checked. Does not allocate.
  void bind(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
            std::span<void*> pointers);
  void set_input(std::size_t index, void* memory) { inputs_[index] = memory; }

  /// Where a storage lies that is the caller's; null before `bind`.
  void* address(const Storage& storage) const;

 private:
  /// A pointer that follows the caller's tensor.
  struct Patch {
    std::size_t pointer;
    Storage::Place place;
    int index;
  };

  const Graph& graph_;
  std::vector<const Value*> input_values_;
  std::vector<TensorSpec> input_specs_;
  std::vector<TensorSpec> output_specs_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<Patch> patches_;
};

}  // namespace graft
