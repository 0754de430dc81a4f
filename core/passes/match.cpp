#include "core/ops/infer.h"
#include "core/passes/match_internal.h"

namespace graft::passes {

Node* only_reader(const Value* value) {
  return value->uses().size() == 1 && !value->is_graph_output() ? value->uses().front().node
                                                                : nullptr;
}

std::optional<double> scalar_of(const Value* value) {
  const Tensor tensor = constant_of(value);
  if (!tensor.defined() || tensor.size() != 1) return std::nullopt;
  return to_double(tensor).front();
}

std::optional<Shape> shape_of(const Value* value) {
  return value != nullptr && value->shape() ? value->shape()->known() : std::nullopt;
}

bool have_one_shape(const Value* a, const Value* b) {
  const std::optional<Shape> shape = shape_of(a);
  return shape && shape == shape_of(b);
}

bool fits_attribute(double number, DType dtype) {
  return dtype != DType::f64 || static_cast<double>(static_cast<float>(number)) == number;
}

bool skip_factor(Value*& value, double& factor) {
  Node* const node = value->producer();
  if (node == nullptr || !(node->is("Mul") || node->is("Div"))) return false;
  for (const int at : node->is("Mul") ? std::vector<int>{0, 1} : std::vector<int>{0}) {
    const std::optional<double> number = scalar_of(node->input(1 - at));
    if (!number || !have_one_shape(node->input(at), value)) continue;
    factor = node->is("Mul") ? factor * *number : factor / *number;
    value = node->input(at);
    return true;
  }
  return false;
}

}  // namespace graft::passes
