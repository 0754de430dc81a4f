#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/layers/layer_context.h"
#include "core/runtime/session.h"

namespace graft {

/// A model of these layers on one f32 input "x".
inline Model model_of(const SymShape& shape, const std::vector<Layer>& layers,
                      std::int64_t opset = 17) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  graph.name = "net";
  Value* const x = graph.add_input("x", {.dtype = DType::f32, .shape = shape});
  LayerContext context(graph, opset);
  graph.add_output(add_layers(context, layers, x));
  return model;
}

inline void set_weights(Model& model, const std::string& name, const std::vector<float>& values) {
  Value* const value = model.graph().find(name);
  value->set_initializer(Tensor::from(value->known_shape(), values));
}

/// The only output for one input.
inline std::vector<float> run(const Model& model, const Shape& shape,
                              const std::vector<float>& values) {
  Session session(model);
  const Tensor output = session.run(std::vector{Tensor::from(shape, values)}).at(0);
  const auto elements = output.values<float>();
  return {elements.begin(), elements.end()};
}

}  // namespace graft
