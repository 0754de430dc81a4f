#include "autograd/gradient_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/graph/model.h"
#include "core/graph/verify.h"
#include "core/passes/pass.h"
#include "core/runtime/session.h"

namespace graft::autograd {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kDomain = "ai.onnx.preview.training";

/// c = a + b, d = c * a; gradients of d.
Model add_and_multiply() {
  Model model;
  model.set_opset("", 12);
  model.set_opset(kDomain, 1);
  Graph& graph = model.graph();
  const ValueType scalar{DType::f32, SymShape{}};
  Value* const a = graph.add_input("a", scalar);
  Value* const b = graph.add_input("b", scalar);
  Value* const c = graph.add_node("Add", "", {a, b}, {"c"})->output();
  Value* const d = graph.add_node("Mul", "", {c, a}, {"d"})->output();
  Node* const node = graph.add_node("Gradient", kDomain, {a, b}, {"dd_da", "dd_db"},
                                    {{"xs", AttributeValue(Names{"a", "b"})}, {"y", "d"}});
  graph.add_output(d);
  graph.add_output(node->output(0));
  graph.add_output(node->output(1));
  return model;
}

std::vector<float> run(Model& model) {
  passes::infer_shapes(model.graph());
  lower_gradient_ops(model.graph());
  verify(model.graph());
  Session session(model);
  std::vector<float> numbers;
  const std::vector<Tensor> inputs{Tensor::scalar(2.0F), Tensor::scalar(3.0F)};
  for (const Tensor& output : session.run(inputs)) {
    numbers.push_back(output.values<const float>()[0]);
  }
  return numbers;
}

/// d = (a + b) a: dd/da = 2 a + b, dd/db = a.
TEST(GradientOp, GivesDerivativesOfNamedValues) {
  Model model = add_and_multiply();
  EXPECT_TRUE(has_gradient_ops(model.graph()));
  EXPECT_THAT(run(model), testing::ElementsAre(10, 7, 2));
  EXPECT_FALSE(has_gradient_ops(model.graph()));
}

/// d2d/da2 = 2, d2d/da db = 1.
TEST(GradientOp, MayDifferentiateADerivative) {
  Model model = add_and_multiply();
  Graph& graph = model.graph();
  Node* const second =
      graph.add_node("Gradient", kDomain, {graph.find("a"), graph.find("b")}, {"d2a", "d2b"},
                     {{"xs", AttributeValue(Names{"a", "b"})}, {"y", "dd_da"}});
  graph.set_outputs({second->output(0), second->output(1)});
  EXPECT_THAT(run(model), testing::ElementsAre(2, 1));
}

TEST(GradientOp, RefusesAnotherPoint) {
  Model model = add_and_multiply();
  Graph& graph = model.graph();
  graph.find("dd_da")->producer()->set_input(0, graph.find("c"));
  try {
    run(model);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
}

}  // namespace
}  // namespace graft::autograd
