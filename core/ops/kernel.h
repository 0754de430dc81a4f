#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace graft {

/// What changes from run to run beside the data.
struct RunState {
  /// Counts runs of the plan from 0: random ops draw from (seed, step, op id).
  std::uint64_t step = 0;
};

/// Memory of one call. Left-out inputs and outputs are null, or past the end where the node lists
/// no more. Outputs are never read before written.
struct KernelArgs {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  /// As many bytes as the factory asked for, aligned to Device::kAlignment; not initialised.
  void* workspace;
  /// Lies where the operands lie: a kernel of another device hands the address on, so that recorded
  /// work reads it when it runs.
  const RunState* run;

  /// Null when left out.
  template <class T>
  const T* input(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return i < inputs.size() ? static_cast<const T*>(inputs[i]) : nullptr;
  }
  template <class T>
  T* output(int index = 0) const {
    const auto i = static_cast<std::size_t>(index);
    return i < outputs.size() ? static_cast<T*>(outputs[i]) : nullptr;
  }
};

/// A prepared call. It never allocates, never throws, never waits for the device. Empty: "not I".
using Kernel = std::function<void(const KernelArgs&)>;

/// An operand along a run of elements.
struct RunOperand {
  const void* elements;  ///< null when left out
  std::int64_t step;     ///< 1; 0 when one element serves the whole run
};

/// What an element-wise op does to a run of elements: y[i] = f(x[0][i], x[1][i], ...) for `count`
/// elements. y may be the memory of an operand in whose place the row allows the output.
using RunFunction = std::function<void(std::int64_t count, std::span<const RunOperand> x, void* y)>;

/// Element type, concrete shape, and order of the elements in memory.
struct TensorSpec {
  DType dtype = DType::undefined;
  Shape shape{};
  Layout layout = Layout::row_major;
};

/// What a factory sees when the plan is built: everything but the data. For an elementwise op
/// (LayoutRule) on channels-last operands, shapes are given in the order of memory.
class KernelRequest {
 public:
  /// All types and shapes of the node's values must be known.
  KernelRequest(const Node& node, Device& device);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  Device& device() const { return device_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int index) const { return node_.input(index) != nullptr; }
  bool has_output(int index) const { return node_.output(index) != nullptr; }
  /// dtype undefined when left out.
  const TensorSpec& input(int index) const;
  const TensorSpec& output(int index = 0) const;
  DType dtype(int index = 0) const { return input(index).dtype; }
  const Shape& shape(int index = 0) const { return input(index).shape; }
  Layout layout(int index = 0) const { return input(index).layout; }
  /// Whether an operand is channels-last and the kernel has to know.
  bool has_channels_last() const;
  /// The elements when they are known before the run; else not defined.
  Tensor constant(int index) const;

  /// Scratch memory for each call; the last request counts.
  void need_workspace(std::size_t bytes) { workspace_bytes_ = bytes; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void see_in_memory_order();

  const Node& node_;
  Device& device_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  std::size_t workspace_bytes_ = 0;
};

/// Decodes attributes and builds descriptors once. Returns an empty Kernel for a case it does not
/// take: the next candidate is asked.
using KernelFactory = Kernel (*)(KernelRequest& request);
/// The same for an element-wise op with one output. The request's shapes say nothing of the runs.
using RunFactory = RunFunction (*)(const KernelRequest& request);

struct KernelDef {
  std::string_view op;
  std::string_view domain = "";
  DeviceKind device = DeviceKind::cpu;
  /// "onednn", "eigen", "reference", ...
  std::string_view name;
  KernelFactory make = nullptr;
  /// Instead of `make`: the kernel applies this run by run, and so may a chain (ElementwiseChain).
  RunFactory make_run = nullptr;
  /// The factory looks at the layouts of its operands. Others are asked for row-major ones alone.
  bool knows_layouts = false;
  /// One kernel serves all nodes of a plan that are alike (core/runtime/alike.h): its factory looks
  /// at nothing of a node but op, attributes, types, shapes, layouts and known elements, as with
  /// `make_run` in any case. Random ops look at a name.
  bool serves_alike = false;
};

/// A prepared kernel and what it needs.
struct PreparedKernel {
  Kernel run;
  std::string_view name;
  std::size_t workspace_bytes = 0;
  bool serves_alike = false;  ///< as in KernelDef
};

/// The first candidate that takes the node on this device; for f16, bf16 else f32 in between.
/// Throws Error{unsupported} naming op, element types, shapes and node when there is none.
PreparedKernel prepare_kernel(const Node& node, Device& device);
/// The same, with an empty `run` when there is none.
PreparedKernel find_kernel(const Node& node, Device& device);
/// What `find_kernel` would apply run by run; empty when that kernel is not element-wise.
RunFunction find_run_function(const Node& node, Device& device);
/// Every candidate that takes it, in order: for tests.
std::vector<PreparedKernel> prepare_all_kernels(const Node& node, Device& device);

}  // namespace graft
