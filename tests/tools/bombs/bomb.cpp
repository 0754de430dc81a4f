#include "tests/tools/bombs/bomb.h"

namespace graft::testing {

BombBuilder::BombBuilder() : builder_(model_.graph()) {
  model_.set_opset("", 21);
  Graph& graph = model_.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 4}});
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {4, 4}, 0.5));
  sum_ = op("MatMul", {x, w});
}

Value* BombBuilder::ints(const std::vector<std::int64_t>& values) {
  return constant_ints(builder_, values).value();
}

Value* BombBuilder::number(float value) {
  return builder_.constant(Tensor::scalar(value));
}

Value* BombBuilder::texts(const Shape& shape, std::string_view text) {
  return builder_.constant(Tensor::from_strings(
      shape, std::vector<std::string>(static_cast<std::size_t>(shape.size()), std::string(text))));
}

Value* BombBuilder::zeros(const Shape& shape) {
  return op("ConstantOfShape", {ints(shape.dims())});
}

Value* BombBuilder::op(std::string_view op, const std::vector<Value*>& inputs,
                       Attributes attributes, int outputs) {
  return builder_.node(op, "", inputs, outputs, std::move(attributes))->output();
}

void BombBuilder::add(Value* value) {
  Value* number = value;
  if (value->dtype() == DType::string) number = op("Equal", {value, value});
  if (number->dtype() != DType::f32) {
    number = op("Cast", {number}, {{"to", 1}});  // TensorProto's number of f32
  }
  Value* const total = op("ReduceSum", {number}, {{"keepdims", 0}});
  sum_ = op("Add", {sum_, total});
}

Model BombBuilder::finish() {
  graph().rename(sum_, "y");
  graph().add_output(sum_);
  return std::move(model_);
}

}  // namespace graft::testing
