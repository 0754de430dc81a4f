#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/op_def.h"
#include "core/tensor/tensor.h"

namespace graft::test {

/// A sample of an op as a graph of one node, with data for its inputs.
struct SampleGraph {
  std::unique_ptr<Graph> graph;
  Node* node = nullptr;
  /// One a node input; not defined where left out.
  std::vector<Tensor> node_inputs;
  /// One a required graph input: the node inputs that are not constants.
  std::vector<Tensor> graph_inputs;
  /// Which graph inputs have the float type under test.
  std::vector<int> float_inputs;
};

/// `float_type` (f32 or f64) stands for f32 in the sample. The data are f32 numbers in both, so
/// that results in the two types can be compared; with `rounded` they are numbers of that type.
SampleGraph make_sample_graph(const OpDef& def, const Sample& sample, DType float_type,
                              DType rounded = DType::f32);

/// The same for 16-bit floats and numbers of that type; nothing where the op does not take them.
std::optional<SampleGraph> short_sample_graph(const OpDef& def, const Sample& sample, DType type);

/// Whether any input or output has a float type.
bool has_floats(const SampleGraph& sample);

}  // namespace graft::test
