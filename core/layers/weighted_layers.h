#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft::edit {

/// A node with a weight: it multiplies by known floats of two axes or more, as Conv, Gemm, MatMul
/// and LSTM do, or looks up their rows. Norms and biases are no layers of their own.
struct WeightedLayer {
  Node* node;
  /// Which input the weight is, and the constant behind it: the input itself, or what that only
  /// rearranges.
  int slot;
  Value* weight;
  /// What the layer is applied to; null where all its inputs are known before the run.
  Value* data;
};

/// The layers that the outputs need, in the order of the graph. Those in bodies do not count.
std::vector<WeightedLayer> weighted_layers(const Graph& graph, const std::vector<Value*>& outputs);

/// The elements of an initializer or of what a Constant node gives; not defined for another value.
Tensor constant_tensor(const Value& value);

/// The value with a `constant_tensor` whose elements these are, in any order, number and type; null
/// if there is none.
Value* constant_behind(Value* value);

/// Whether all that the outputs take from graph inputs, but for shapes, passes through the value.
bool is_only_way(const Graph& graph, const Value* value, const std::vector<Value*>& outputs);

}  // namespace graft::edit
