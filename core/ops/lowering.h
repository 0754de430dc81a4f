#pragma once

#include <vector>

#include "core/ops/builder.h"

namespace graft {

/// A node as the function in its row that writes it in ops of ONNX (OpDef::lower) reads it. All
/// shapes are known.
class LoweredNode {
 public:
  LoweredNode(const Node& node, Builder& builder) : node_(node), builder_(builder) {}

  const Node& node() const { return node_; }
  Builder& builder() const { return builder_; }
  const Attributes& attributes() const { return node_.attributes; }
  bool has_x(int index) const { return node_.input(index) != nullptr; }
  bool has_y(int index) const { return node_.output(index) != nullptr; }
  /// Empty where the input is left out.
  Expr x(int index) const { return has_x(index) ? builder_.expr(node_.input(index)) : Expr(); }
  double number(std::string_view name, float fallback) const {
    return static_cast<double>(attributes().get_float(name, fallback));
  }
  bool flag(std::string_view name) const { return attributes().get_int(name, 0) != 0; }

  /// A constant of one number in all elements, which takes the space of one.
  Expr full(DType dtype, const Shape& shape, double number) const {
    return expand(builder_.expr(builder_.constant(Tensor::full(dtype, Shape{}, number))), shape);
  }
  Expr constant(DType dtype, const Shape& shape, const std::vector<double>& numbers) const {
    return builder_.expr(builder_.constant(Tensor::from(shape, numbers).cast(dtype)));
  }

 private:
  const Node& node_;
  Builder& builder_;
};

}  // namespace graft
