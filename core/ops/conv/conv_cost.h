#pragma once

#include "core/ops/cost.h"

namespace graft {

/// Multiply-adds of a convolution or of a gradient of one: a product for each element of `values`
/// and each weight behind the first axis of `weight` [out, in/groups, kernel...].
inline std::optional<std::int64_t> conv_multiply_adds(const Value* values, const Value* weight) {
  const std::optional<Shape> many = shape_if_known(values);
  const std::optional<Shape> w = shape_if_known(weight);
  if (!many || !w) return std::nullopt;
  return checked_multiply(many->size(), w->size(1, w->rank()));
}

/// Of what sums inputs to each element of output 0, by the weights of input 1.
inline std::optional<std::int64_t> gathering_multiply_adds(const Node& node) {
  return conv_multiply_adds(node.output(0), node.input(1));
}

/// Of what spreads each element of input 0, by the weights of input 1.
inline std::optional<std::int64_t> spreading_multiply_adds(const Node& node) {
  return conv_multiply_adds(node.input(0), node.input(1));
}

/// Of the gradient of weights, output 0; input 1 is that of the convolution's result.
inline std::optional<std::int64_t> weight_grad_multiply_adds(const Node& node) {
  return conv_multiply_adds(node.input(1), node.output(0));
}

}  // namespace graft
