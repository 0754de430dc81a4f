#include "core/ops/as_f32_internal.h"

#include <algorithm>
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "core/ops/workspace_internal.h"

namespace graft {
namespace {

using ShortTypes = TypeList<Half, BFloat16>;

bool is_short(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

ValueType lengthened(const Value& value) {
  ValueType type = value.type();
  if (is_short(type.dtype)) type.dtype = DType::f32;
  return type;
}

/// The node alone in a graph of its own, in f32.
class Twin {
 public:
  explicit Twin(const Node& node) {
    std::vector<Value*> inputs;
    for (const Value* input : node.inputs()) inputs.push_back(copy_input(input));
    node_ = graph_.add_node(node.op_type(), node.domain(), inputs, {}, node.attributes);
    for (int i = 0; i < node.output_count(); ++i) {
      const Value* const output = node.output(i);
      // Some kernels draw random numbers by the name of their output.
      Value* const added = graph_.add_node_output(node_, output == nullptr ? "" : output->name());
      if (output == nullptr) continue;
      added->set_type(lengthened(*output));
      added->layout = output->layout;
    }
  }

  const Node& node() const { return *node_; }

 private:
  Value* copy_input(const Value* input) {
    if (input == nullptr) return nullptr;
    if (Value* const known = graph_.find(input->name())) return known;  // x * x
    const ValueType type = lengthened(*input);
    const Tensor constant = constant_of(input);
    if (!constant.defined()) {
      Value* const copy = graph_.add_input(input->name(), type);
      copy->layout = input->layout;
      return copy;
    }
    return graph_.add_initializer(
        input->name(), is_short(constant.dtype()) ? constant.cast(DType::f32) : constant);
  }

  Graph graph_;
  Node* node_ = nullptr;
};

/// A value of a short type and its f32 form in the workspace.
struct Converted {
  std::size_t index;  ///< among the inputs or outputs
  DType dtype;
  std::int64_t size;
  std::size_t offset;
};

std::vector<Converted> converted(const std::vector<const Value*>& values, WorkspaceLayout& layout) {
  std::vector<Converted> list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr || !is_short(values[i]->dtype())) continue;
    const std::int64_t size = values[i]->known_shape().size();
    list.push_back({i, values[i]->dtype(), size, layout.reserve<float>(size)});
  }
  return list;
}

template <class To, class From>
void convert(const From* x, std::int64_t size, To* y) {
  constexpr std::int64_t kGrain = 16384;
  parallel_for(size, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = To(static_cast<float>(x[i]));
  });
}

/// Everything that a run needs; pointers to operands lie in the workspace, for runs allocate
/// nothing.
struct Program {
  PreparedKernel inner;
  std::vector<Converted> inputs;
  std::vector<Converted> outputs;
  std::size_t input_pointers = 0;
  std::size_t output_pointers = 0;
  std::size_t workspace = 0;

  void operator()(const KernelArgs& args) const {
    auto* const from = workspace_at<const void*>(args, input_pointers);
    auto* const to = workspace_at<void*>(args, output_pointers);
    std::ranges::copy(args.inputs, from);
    std::ranges::copy(args.outputs, to);
    for (const Converted& input : inputs) {
      auto* const floats = workspace_at<float>(args, input.offset);
      visit_dtype(ShortTypes{}, input.dtype, [&]<class T>() {
        convert(static_cast<const T*>(from[input.index]), input.size, floats);
      });
      from[input.index] = floats;
    }
    for (const Converted& output : outputs) {
      to[output.index] = workspace_at<float>(args, output.offset);
    }
    inner.run({{from, args.inputs.size()},
               {to, args.outputs.size()},
               workspace_at<std::byte>(args, workspace),
               args.run});
    for (const Converted& output : outputs) {
      visit_dtype(ShortTypes{}, output.dtype, [&]<class T>() {
        convert(static_cast<const float*>(to[output.index]), output.size,
                static_cast<T*>(args.outputs[output.index]));
      });
    }
  }
};

}  // namespace

PreparedKernel prepare_as_f32(const Node& node, Device& device) {
  std::vector<const Value*> inputs(node.inputs().begin(), node.inputs().end());
  std::vector<const Value*> outputs;
  for (int i = 0; i < node.output_count(); ++i) outputs.push_back(node.output(i));
  Program program;
  WorkspaceLayout layout;
  program.inputs = converted(inputs, layout);
  program.outputs = converted(outputs, layout);
  if (program.inputs.empty() && program.outputs.empty()) return {};
  const Twin twin(node);
  const std::vector<PreparedKernel> kernels = prepare_all_kernels(twin.node(), device);
  if (kernels.empty()) return {};
  program.inner = kernels.front();
  program.input_pointers = layout.reserve<void*>(static_cast<std::int64_t>(inputs.size()));
  program.output_pointers = layout.reserve<void*>(static_cast<std::int64_t>(outputs.size()));
  program.workspace = layout.reserve_bytes(program.inner.workspace_bytes);
  // One copy for all copies of the kernel.
  const auto shared = std::make_shared<const Program>(std::move(program));
  return {[shared](const KernelArgs& args) { (*shared)(args); }, "as_f32", layout.bytes()};
}

}  // namespace graft
