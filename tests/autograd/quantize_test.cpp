#include <gmock/gmock.h>

#include "autograd/backward.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"

namespace graft {
namespace {

using ::testing::ElementsAre;

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

/// Quantized and dequantized, a value has the gradient 1 inside the range and 0 outside.
TEST(Quantize, TrainsStraightThrough) {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  Value* const x = graph->add_input("x", {DType::f32, SymShape(Shape{3})});
  const Expr scale = builder.expr(builder.constant(Tensor::scalar(0.5F)));
  const Expr zero = builder.expr(builder.constant(Tensor::scalar<std::int8_t>(0)));
  const Expr q = call("QuantizeLinear", {builder.expr(x), scale, zero});
  const Expr y = call("DequantizeLinear", {q, scale, zero});
  graph->set_outputs({y.value()});
  passes::decompose(*graph);
  const auto gradients = autograd::backward(*graph, {{graph->outputs()[0]}}, {x});
  graph->set_outputs({graph->outputs()[0], gradients[0]});
  passes::settle(*graph);
  Plan plan(std::move(graph));
  plan.run(std::vector<Tensor>{Tensor::from<float>({3}, {0.8F, -80, 5})});
  EXPECT_THAT(floats(plan.output(0)), ElementsAre(1, -64, 5));
  EXPECT_THAT(floats(plan.output(1)), ElementsAre(1, 0, 1));
}

}  // namespace
}  // namespace graft
