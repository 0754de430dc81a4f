#include "autograd/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "tests/core/error_of.h"

namespace graft::autograd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ValueType f32(const Shape& shape) {
  return {DType::f32, SymShape(shape)};
}

std::vector<float> run(std::unique_ptr<Graph> graph, const std::vector<Tensor>& inputs,
                       int output) {
  Plan plan(std::move(graph));
  plan.run(inputs);
  const auto values = plan.output(output).values<const float>();
  return {values.begin(), values.end()};
}

/// y = x*x + x: both consumers of x contribute, 2x + 1.
TEST(Backward, SumsOverAllConsumers) {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", f32({2})));
  const Expr y = x * x + x;
  const auto gradients = backward(*graph, {{y.value()}}, {x.value()});
  graph->set_outputs({gradients[0]});
  passes::eliminate_dead(*graph);
  verify(*graph);
  EXPECT_THAT(run(std::move(graph), {Tensor::from<float>({2}, {3, -1})}, 0), ElementsAre(7, -1));
}

TEST(Backward, AddsPlainNodes) {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", f32({2, 3})));
  const Expr b = builder.expr(graph->add_input("b", f32({3})));
  Value* const seed = graph->add_input("seed", f32({2, 3}));
  const Expr y = x * b;
  const auto gradients = backward(*graph, {{y.value(), seed}}, {x.value(), b.value()});
  graph->set_outputs(gradients);
  passes::eliminate_dead(*graph);
  // The bias was broadcast over the rows, so its gradient is summed over them.
  EXPECT_EQ(
      print(*graph),
      R"(g(x: f32[2,3], b: f32[3], seed: f32[2,3]) -> (grad/mul: f32[2,3], grad/reducesum: f32[3])
  grad/constant: i64[1] = {0}
  grad/mul: f32[2,3] = Mul(seed, b)
  grad/mul_1: f32[2,3] = Mul(seed, x)
  grad/reducesum: f32[3] = ReduceSum(grad/mul_1, grad/constant) {keepdims = 0}
)");
}

TEST(Backward, GradientsHaveTheTypeOfTheirValue) {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", f32({2})));
  const Expr y = cast(x, DType::f64) * 3.0;
  const auto gradients = backward(*graph, {{y.value()}}, {x.value()});
  EXPECT_EQ(gradients[0]->dtype(), DType::f32);
  graph->set_outputs({gradients[0]});
  passes::eliminate_dead(*graph);
  EXPECT_THAT(run(std::move(graph), {Tensor::from<float>({2}, {1, 2})}, 0), ElementsAre(3, 3));
}

/// Only one part of a Split is used: the other part's gradient is zero.
TEST(Backward, AnUnusedOutputCountsAsZero) {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", f32({4})));
  const auto parts = call_multi("Split", "", {x}, 2, {{"num_outputs", 2}});
  const auto gradients = backward(*graph, {{(parts[1] * 5.0).value()}}, {x.value()});
  graph->set_outputs({gradients[0]});
  passes::eliminate_dead(*graph);
  EXPECT_THAT(run(std::move(graph), {Tensor::zeros(DType::f32, {4})}, 0), ElementsAre(0, 0, 5, 5));
}

TEST(Backward, IntermediateAndUnreachableValues) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", f32({2})));
  const Expr other = builder.expr(graph.add_input("other", f32({2})));
  const Expr middle = exp(x);
  const Expr y = middle * 2.0;
  const auto gradients = backward(graph, {{y.value()}}, {middle.value(), other.value(), x.value()});
  EXPECT_NE(gradients[0], nullptr);
  EXPECT_EQ(gradients[1], nullptr);
  EXPECT_NE(gradients[2], nullptr);
}

TEST(Backward, SeveralSeedsAddUp) {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", f32({1})));
  const Expr a = x * 2.0;
  const Expr b = x * x;
  Value* const weight = graph->add_initializer("weight", Tensor::from<float>({1}, {10}));
  const auto gradients = backward(*graph, {{a.value()}, {b.value(), weight}}, {x.value()});
  graph->set_outputs({gradients[0]});
  passes::eliminate_dead(*graph);
  EXPECT_THAT(run(std::move(graph), {Tensor::from<float>({1}, {3})}, 0), ElementsAre(62));
}

TEST(Backward, ListsAllBlockersBeforeItAddsAnything) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", f32({2})));
  Node* const first = graph.add_node("Mystery", "", {x.value()}, {"m"});
  first->output()->set_type(f32({2}));
  Node* const second = graph.add_node("Riddle", "custom", {first->output()}, {"r"});
  second->set_name("riddle");
  second->output()->set_type(f32({2}));
  const std::string before = print(graph);
  const Error error = error_of([&] { backward(graph, {{second->output()}}, {x.value()}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("cannot pass through 2 nodes"));
  EXPECT_THAT(error.what(), HasSubstr("Mystery node producing 'm': the op is not known to Graft"));
  EXPECT_THAT(error.what(), HasSubstr("Riddle node 'riddle'"));
  EXPECT_EQ(print(graph), before);
  EXPECT_EQ(blockers(graph, {second->output()}, {x.value()}).size(), 2U);
  EXPECT_TRUE(blockers(graph, {first->output()}, {second->output()}).empty());
}

}  // namespace
}  // namespace graft::autograd
