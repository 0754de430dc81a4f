#include "core/ops/evaluate.h"

#include "core/base/at.h"
#include "core/base/parallel.h"
#include "core/ops/registry.h"

namespace graft {

std::vector<Tensor> evaluate(const PreparedKernel& kernel, const Node& node,
                             const std::vector<Tensor>& inputs, const RunState& state) {
  std::vector<const void*> input_pointers;
  for (const Tensor& input : inputs) {
    input_pointers.push_back(input.defined() ? input.data() : nullptr);
  }
  std::vector<Tensor> outputs;
  std::vector<void*> output_pointers;
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const value = node.output(i);
    outputs.push_back(value == nullptr ? Tensor()
                                       : Tensor::empty(value->dtype(), value->known_shape()));
    output_pointers.push_back(value == nullptr ? nullptr : outputs.back().data());
  }
  const Tensor workspace =
      Tensor::empty(DType::u8, {static_cast<std::int64_t>(kernel.workspace_bytes)});
  const DenormalsFlushed flushed;  // as a plan does
  kernel.run({input_pointers, output_pointers, workspace.data(), &state});
  return outputs;
}

std::vector<Tensor> evaluate(const Node& node, const std::vector<Tensor>& inputs,
                             const RunState& state) {
  for (const Alias& alias : OpRegistry::instance().get(node).aliases) {
    if (alias.kind != AliasKind::view) continue;
    const Tensor& source = at(inputs, alias.input);
    const Value& output = *node.output(alias.output);
    if (source.dtype() == output.dtype()) return {source.reshaped(output.known_shape()).clone()};
    return {Tensor::from_bytes(output.dtype(), output.known_shape(), source.data(),
                               source.bytes())};  // BitCast
  }
  return evaluate(prepare_kernel(node, cpu()), node, inputs, state);
}

}  // namespace graft
