#include "core/ops/fallback.h"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/say_once.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// Calls of one device follow one another, so that all kernels share one block.
std::shared_ptr<void> host_memory(Device& device, std::size_t bytes) {
  struct Block {
    std::weak_ptr<void> memory;
    std::size_t bytes = 0;
  };
  static std::mutex mutex;
  static std::map<const Device*, Block>& blocks = *new std::map<const Device*, Block>;
  const std::scoped_lock lock(mutex);
  Block& block = blocks[&device];
  std::shared_ptr<void> memory = block.memory.lock();
  if (memory != nullptr && block.bytes >= bytes) return memory;
  const std::size_t grown = memory == nullptr ? bytes : std::max(bytes, 2 * block.bytes);
  memory = device.allocate_host(grown);
  block = {memory, grown};
  return memory;
}

struct Operand {
  std::size_t bytes = 0;
  std::size_t offset = 0;  ///< in host memory
};

class HostCall {
 public:
  HostCall(const Node& node, Device& device)
      : device_(device), kernel_(prepare_kernel(node, cpu())) {
    WorkspaceLayout layout;
    for (const Value* input : node.inputs()) inputs_.push_back(place(input, layout));
    for (int i = 0; i < node.output_count(); ++i) {
      outputs_.push_back(place(node.output(i), layout));
    }
    run_ = layout.reserve_bytes(sizeof(RunState));
    workspace_ = layout.reserve_bytes(kernel_.workspace_bytes);
    memory_ = host_memory(device, layout.bytes());
    from_.resize(inputs_.size());
    to_.resize(outputs_.size());
  }

  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  ~HostCall() { device_.settle(); }  // it may still call us

  void give(const KernelArgs& args) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      from_[i] = args.inputs[i] == nullptr ? nullptr : at(inputs_[i].offset);
      if (from_[i] != nullptr) device_.copy_async(from_[i], args.inputs[i], inputs_[i].bytes);
    }
    device_.copy_async(at(run_), args.run, sizeof(RunState));
    for (std::size_t i = 0; i < outputs_.size(); ++i) to_[i] = host_output(args, i);
    device_.call_host([](void* self) { static_cast<HostCall*>(self)->run(); }, this);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (to_[i] != nullptr) device_.copy_async(args.outputs[i], to_[i], outputs_[i].bytes);
    }
  }

 private:
  static Operand place(const Value* value, WorkspaceLayout& layout) {
    if (value == nullptr) return {};
    return {value->bytes(), layout.reserve_bytes(value->bytes())};
  }

  void* at(std::size_t offset) const { return static_cast<std::byte*>(memory_.get()) + offset; }

  /// In place here if it is in place there. What is empty may have any address.
  void* host_output(const KernelArgs& args, std::size_t index) const {
    if (args.outputs[index] == nullptr) return nullptr;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (args.inputs[i] == args.outputs[index] && inputs_[i].bytes > 0) return from_[i];
    }
    return at(outputs_[index].offset);
  }

  /// On a thread of the driver, where nothing may be thrown: a library's kernel may lack memory.
  void run() const noexcept {
    try {
      const DenormalsFlushed flushed;  // as a plan does
      kernel_.run({{from_.data(), from_.size()},
                   {to_.data(), to_.size()},
                   at(workspace_),
                   static_cast<const RunState*>(at(run_))});
    } catch (const std::exception& error) {
      device_.note_failure(text("a kernel that ran on the CPU: ", error.what()));
    }
  }

  Device& device_;
  PreparedKernel kernel_;
  std::shared_ptr<void> memory_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::size_t run_ = 0;
  std::size_t workspace_ = 0;
  std::vector<void*> from_;
  std::vector<void*> to_;
};

}  // namespace

PreparedKernel prepare_fallback(const Node& node, Device& device) {
  const auto call = std::make_shared<HostCall>(node, device);
  say_once(text("no ", device.name(), " kernel for ", node.op_type(), ": it runs on the CPU"));
  return {[call](const KernelArgs& args) { call->give(args); }, "fallback"};
}

}  // namespace graft
