#pragma once

#include <memory>
#include <string_view>

#include "core/graph/model.h"

namespace graft {

inline ValueType f32(const SymShape& shape) {
  return {DType::f32, shape};
}

/// h = Mul(x, w), y = Relu(h), all f32[2].
inline std::unique_ptr<Graph> chain() {
  auto graph = std::make_unique<Graph>("main");
  Value* const x = graph->add_input("x", f32({2}));
  Value* const w = graph->add_initializer("w", Tensor::from<float>({2}, {1, 2}));
  Value* const h = graph->add_node("Mul", "", {x, w}, {"h"})->output();
  Value* const y = graph->add_node("Relu", "", {h}, {"y"})->output();
  h->set_type(f32({2}));
  y->set_type(f32({2}));
  graph->add_output(y);
  return graph;
}

/// y = If(c): Neg(x) in a branch of its own value "t", else x itself; then z = Mul(y, w).
inline std::unique_ptr<Graph> branching() {
  auto graph = std::make_unique<Graph>("main");
  Value* const x = graph->add_input("x", f32({2}));
  Value* const c = graph->add_input("c", {DType::boolean, SymShape()});
  Value* const w = graph->add_initializer("w", Tensor::from<float>({2}, {1, 2}));
  auto then = std::make_shared<Graph>("then", graph.get());
  Value* const t = then->add_node("Neg", "", {x}, {"t"})->output();
  t->set_type(f32({2}));
  then->add_output(t);
  auto other = std::make_shared<Graph>("else", graph.get());
  other->add_output(x);
  Value* const y =
      graph->add_node("If", "", {c}, {"y"}, {{"then_branch", then}, {"else_branch", other}})
          ->output();
  Value* const z = graph->add_node("Mul", "", {y, w}, {"z"})->output();
  y->set_type(f32({2}));
  z->set_type(f32({2}));
  graph->add_output(z);
  return graph;
}

/// The body under that attribute, of the first node that has it.
inline Graph& body(const Graph& graph, std::string_view attribute) {
  for (const auto& node : graph.nodes()) {
    if (const Attribute* const found = node->attributes.find(attribute)) {
      return *std::get<std::shared_ptr<Graph>>(found->value);
    }
  }
  fail(ErrorKind::argument, "no node has a body '", attribute, "'");
}

}  // namespace graft
