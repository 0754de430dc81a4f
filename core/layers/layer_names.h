#pragma once

#include <string>

#include "core/graph/graph.h"

namespace graft::edit {

/// The initializer or Constant whose elements, rearranged or dequantized, a value has; null where
/// it depends on an input.
Value* origin_of(Value* value);

/// What the program behind the file may have called the layer that a node is: after its weight
/// ("fc1" for "fc1.weight"), after the bias that is added where the exporter made the weight, or
/// after the node ("encoder.fc1" for "/encoder/fc1/MatMul"). `weight`: the name of the weight.
std::string layer_name(const Node& node, const std::string& weight);

/// Whether the node multiplies by a weight: MatMul, Gemm, Conv, or MatMulNBits of com.microsoft.
bool is_weighted(const Node& node);

/// Adds a node that reads `value` and then `others`, and takes over its name, its readers and its
/// type; `value` gets `new_name`, or one like it. The node stands before `before`, at the end if
/// that is null.
Node* insert_behind(Value* value, std::string_view op, const std::vector<Value*>& others,
                    const std::string& new_name, Node* before, Attributes attributes = {});

}  // namespace graft::edit
