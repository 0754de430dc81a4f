#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/model.h"
#include "core/ops/builder.h"
#include "core/ops/evaluate.h"
#include "core/passes/pass.h"

namespace graft::testing {

/// A graph of one node whose inputs are initializers; a tensor that is not defined leaves the input
/// out. The types of the outputs are inferred.
struct OneNode {
  OneNode(std::string_view op, std::string_view domain, const std::vector<Tensor>& tensors,
          int outputs, Attributes attributes) {
    Builder builder(graph);
    std::vector<Value*> values;
    for (const Tensor& tensor : tensors) {
      values.push_back(tensor.defined() ? builder.constant(tensor, "x") : nullptr);
    }
    node = builder.node(op, domain, values, outputs, std::move(attributes));
  }

  Graph graph;
  Node* node = nullptr;
};

/// Runs a standard op by its first kernel, or as the simpler ops that it is written as.
inline std::vector<Tensor> call_op(std::string_view op, const std::vector<Tensor>& inputs,
                                   Attributes attributes = {}, int outputs = 1) {
  OneNode one(op, "", inputs, outputs, std::move(attributes));
  std::vector<Value*> results;
  for (int i = 0; i < outputs; ++i) results.push_back(one.node->output(i));
  one.graph.set_outputs(results);
  if (!passes::decompose_where_needed(one.graph, cpu())) return evaluate(*one.node, inputs);
  passes::fold_constants(one.graph);
  std::vector<Tensor> tensors;
  for (const Value* output : one.graph.outputs()) tensors.push_back(output->initializer());
  return tensors;
}

/// Runs an op of the internal domain.
inline std::vector<Tensor> call_internal_op(std::string_view op, const std::vector<Tensor>& inputs,
                                            Attributes attributes = {}, int outputs = 1,
                                            const RunState& state = {}) {
  const OneNode one(op, kInternalDomain, inputs, outputs, std::move(attributes));
  return evaluate(*one.node, inputs, state);
}

/// Runs an op of ai.onnx.ml.
inline std::vector<Tensor> call_ml(std::string_view op, const Tensor& x, Attributes attributes,
                                   int outputs = 1) {
  const OneNode one(op, "ai.onnx.ml", {x}, outputs, std::move(attributes));
  return evaluate(*one.node, {x});
}

/// The same call in the form of opset `from`: upgraded and folded; output 0.
inline Tensor call_old_op(std::string_view op, std::int64_t from, const std::vector<Tensor>& inputs,
                          Attributes attributes = {}) {
  Model model;
  model.set_opset("", from);
  Graph& graph = model.graph();
  std::vector<Value*> values;
  for (const Tensor& tensor : inputs) {
    values.push_back(graph.add_initializer(graph.unique_name("x"), tensor));
  }
  graph.add_output(graph.add_node(op, "", values, {"y"}, std::move(attributes))->output(0));
  passes::upgrade_opset(model);
  passes::infer_shapes(graph);
  passes::fold_constants(graph);
  return graph.outputs().front()->initializer();
}

inline std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

}  // namespace graft::testing
