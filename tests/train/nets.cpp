#include "tests/train/nets.h"

#include "core/base/rng.h"
#include "core/ops/builder.h"

namespace graft::test {

Model linear_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}});
  Value* const w = graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, 2, 3, 4}));
  Value* const b = graph.add_initializer("b", Tensor::from<float>({2}, {0.5F, -0.5F}));
  Builder builder(graph);
  const Node* const node =
      builder.node("Gemm", "", {x, w, b}, std::vector<std::string>{"y"}, Attributes{});
  graph.add_output(node->output());
  return model;
}

Model two_outputs() {
  Model model = linear_model();
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr v = builder.expr(graph.add_initializer("v", Tensor::from<float>({2, 1}, {2, 3})));
  Value* const z = matmul(builder.expr(graph.find("x")), v).value();
  graph.rename(z, "z");
  graph.add_output(z);
  return model;
}

Tensor random_tensor(const Shape& shape, std::uint64_t seed) {
  Tensor tensor = Tensor::empty(DType::f32, shape);
  const Philox random(seed);
  std::uint64_t index = 0;
  for (float& value : tensor.values<float>()) value = 2.0F * random.uniform(index++) - 1.0F;
  return tensor;
}

Tensor cyclic_labels(std::int64_t count, std::int64_t classes) {
  Tensor labels = Tensor::empty(DType::i64, {count});
  std::int64_t next = 0;
  for (std::int64_t& label : labels.values<std::int64_t>()) label = next++ % classes;
  return labels;
}

std::vector<Tensor> snapshot(const Model& model) {
  std::vector<Tensor> copies;
  for (const Value* value : model.graph().initializers()) {
    copies.push_back(value->initializer().clone());
  }
  return copies;
}

}  // namespace graft::test
