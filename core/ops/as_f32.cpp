#include "core/base/machine.h"
#include "core/ops/as_f32_internal.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/f32_twin.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/prefetch.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using ShortTypes = TypeList<Half, BFloat16>;

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
    if (values[i] == nullptr || !is_short_float(values[i]->dtype())) continue;
    const std::int64_t size = values[i]->known_shape().size();
    list.push_back({i, values[i]->dtype(), size, layout.reserve<float>(size)});
  }
  return list;
}

template <class To, class From>
void convert(const From* x, std::int64_t size, To* y) {
  parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
    convert_floats(x + first, last - first, y + first);
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
      visit_kernel_dtype(ShortTypes{}, input.dtype, [&]<class T>() {
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
      visit_kernel_dtype(ShortTypes{}, output.dtype, [&]<class T>() {
        convert(static_cast<const float*>(to[output.index]), output.size,
                static_cast<T*>(args.outputs[output.index]));
      });
    }
  }
};

bool has_short_type(const Node& node) {
  const auto is = [](const Value* value) {
    return value != nullptr && is_short_float(value->dtype());
  };
  return std::ranges::any_of(node.inputs(), is) || is(node.output());
}

/// Runs the f32 function on copies of a block of each operand of a short type.
class RunByBlocks {
 public:
  static constexpr std::size_t kMostOperands = 4;

  RunByBlocks(const Node& node, RunFunction inner)
      : inner_(std::move(inner)), result_(node.output()->dtype()) {
    for (const Value* input : node.inputs()) {
      operands_.push_back(input == nullptr ? DType::undefined : input->dtype());
    }
  }

  void operator()(std::int64_t count, std::span<const RunOperand> x, void* y) const {
    alignas(64) std::array<std::array<float, kBlock>, kMostOperands + 1> blocks;
    std::array<RunOperand, kMostOperands> operands{};
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const std::int64_t size = std::min(kBlock, count - first);
      for (std::size_t i = 0; i < x.size(); ++i) {
        operands[i] = read(x[i], operands_[i], first, size, blocks[i].data());
      }
      const std::span<const RunOperand> given(operands.data(), x.size());
      std::byte* const to = static_cast<std::byte*>(y) + bytes_of(result_, first);
      if (!is_short_float(result_)) {
        inner_(size, given, to);
        continue;
      }
      float* const result = blocks[kMostOperands].data();
      inner_(size, given, result);
      visit_kernel_dtype(ShortTypes{}, result_, [&]<class T>() {
        convert_floats(result, size, reinterpret_cast<T*>(to));
      });
    }
  }

 private:
  static constexpr std::int64_t kBlock = 512;

  static RunOperand read(const RunOperand& x, DType dtype, std::int64_t first, std::int64_t size,
                         float* block) {
    if (x.elements == nullptr) return x;
    const auto* const from =
        static_cast<const std::byte*>(x.elements) + bytes_of(dtype, first * x.step);
    if (!is_short_float(dtype)) return {from, x.step};
    visit_kernel_dtype(ShortTypes{}, dtype, [&]<class T>() {
      const T* const numbers = reinterpret_cast<const T*>(from);
      if (x.step == 1) prefetch_run(numbers + kBlock, kBlock);
      convert_floats(numbers, x.step == 0 ? 1 : size, block);
    });
    return {block, x.step};
  }

  RunFunction inner_;
  std::vector<DType> operands_;
  DType result_;
};

}  // namespace

RunFunction run_as_f32(const Node& node, Device& device) {
  const bool fits = node.output_count() == 1 && node.output() != nullptr &&
                    node.inputs().size() <= RunByBlocks::kMostOperands && has_short_type(node);
  if (!fits) return {};
  const F32Twin twin(node);
  RunFunction inner = find_run_function(twin.node(), device);
  if (!inner) return {};
  return RunByBlocks(node, std::move(inner));
}

PreparedKernel prepare_as_f32(const Node& node, Device& device) {
  std::vector<const Value*> inputs(node.inputs().begin(), node.inputs().end());
  std::vector<const Value*> outputs;
  for (int i = 0; i < node.output_count(); ++i) outputs.push_back(node.output(i));
  Program program;
  WorkspaceLayout layout;
  program.inputs = converted(inputs, layout);
  program.outputs = converted(outputs, layout);
  if (program.inputs.empty() && program.outputs.empty()) return {};
  const F32Twin twin(node);
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
