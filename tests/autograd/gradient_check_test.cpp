#include "autograd/gradient_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"

namespace graft::autograd {
namespace {

/// y = op(x) with x f64.
std::unique_ptr<Graph> unary_graph(std::string_view op, const Shape& shape) {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", {DType::f64, SymShape(shape)}));
  graph->add_output(call(op, {x}).value());
  return graph;
}

Tensor numbers(std::int64_t count, double first) {
  Tensor tensor = Tensor::empty(DType::f64, {count});
  for (double& value : tensor.values<double>()) value = first += 0.25;
  return tensor;
}

TEST(GradientCheck, ARightGradientPasses) {
  EXPECT_THAT(check_gradients(*unary_graph("Tanh", {5}), {numbers(5, -1)}, {0}),
              testing::IsEmpty());
  // More elements than are moved one by one.
  EXPECT_THAT(check_gradients(*unary_graph("Tanh", {200}), {numbers(200, -20)}, {0}),
              testing::IsEmpty());
}

/// At a jump the difference quotient is huge and the gradient is 0: what a wrong rule looks like.
TEST(GradientCheck, AWrongGradientIsReported) {
  const auto graph = unary_graph("Floor", {3});
  const auto problems = check_gradients(*graph, {Tensor::from<double>({3}, {0.5, 1.0, 1.5})}, {0});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], testing::HasSubstr("input 0 element 1: gradient 0"));
}

}  // namespace
}  // namespace graft::autograd
