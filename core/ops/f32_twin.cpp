#include "core/ops/f32_twin.h"

#include "core/ops/infer.h"

namespace graft {
namespace {

ValueType lengthened(const Value& value) {
  ValueType type = value.type();
  if (is_short_float(type.dtype)) type.dtype = DType::f32;
  return type;
}

}  // namespace

bool is_short_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

Expr widened(const Expr& x) {
  return is_short_float(x.dtype()) ? cast(x, DType::f32) : x;
}

F32Twin::F32Twin(const Node& node) {
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

Value* F32Twin::copy_input(const Value* input) {
  if (input == nullptr) return nullptr;
  if (Value* const known = graph_.find(input->name())) return known;  // x * x
  const ValueType type = lengthened(*input);
  const Tensor constant = constant_of(input);
  Value* const copy = constant.defined()
                          ? graph_.add_initializer(input->name(), is_short_float(constant.dtype())
                                                                      ? constant.cast(DType::f32)
                                                                      : constant)
                          : graph_.add_input(input->name(), type);
  copy->layout = input->layout;
  return copy;
}

}  // namespace graft
