#include "core/runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

/// Outputs: (x+1)*x, x viewed as [2,1], and the constant (5,6).
std::unique_ptr<Graph> make_graph() {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{2}}));
  graph->add_output(((x + 1.0) * x).value());
  graph->add_output(reshape(x, {2, 1}).value());
  graph->add_output(graph->add_initializer("fixed", Tensor::from<float>({2}, {5, 6})));
  return graph;
}

TEST(Plan, InputsAreBoundAnewInEachRun) {
  for (const bool poison : {false, true}) {
    Plan plan(make_graph(), {.poison = poison});
    plan.run(std::vector<Tensor>{Tensor::from<float>({2}, {1, 2})});
    EXPECT_THAT(floats(plan.output(0)), ElementsAre(2, 6));
    const Tensor second = Tensor::from<float>({2}, {3, 4});
    plan.run(std::vector<Tensor>{second});
    EXPECT_THAT(floats(plan.output(0)), ElementsAre(12, 20));
    EXPECT_THAT(floats(plan.output(1)), ElementsAre(3, 4));
    EXPECT_EQ(plan.output(1).shape(), (Shape{2, 1}));
    EXPECT_THAT(floats(plan.output(2)), ElementsAre(5, 6));
    EXPECT_THAT(floats(second), ElementsAre(3, 4)) << "the caller's tensor stays as it is";
  }
}

TEST(Plan, SaysWhatItRuns) {
  EXPECT_EQ(Plan(make_graph()).profile().front().node->op_type(), "ElementwiseChain");
  Plan plan(make_graph(), {.fuses_chains = false});
  EXPECT_EQ(plan.step_count(), 2U);
  const std::vector<StepProfile> steps = plan.profile();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].node->op_type(), "Add");
  EXPECT_EQ(steps[1].node->op_type(), "Mul");
  EXPECT_FALSE(steps[0].kernel.empty());
  EXPECT_EQ(steps[0].seconds, 0.0);
  EXPECT_GE(plan.arena_bytes(), plan.lower_bound_bytes());
}

TEST(Plan, MeasuresItsSteps) {
  Plan plan(make_graph(), {.fuses_chains = false});
  plan.set_profiling(true);
  plan.run(std::vector<Tensor>{Tensor::from<float>({2}, {1, 2})});
  ASSERT_EQ(plan.profile().size(), 2U);
  EXPECT_GE(plan.profile()[0].seconds, 0.0);
}

TEST(Plan, WhatDoesNotFitIsNamed) {
  Plan plan(make_graph());
  const auto fails = [&](const std::vector<Tensor>& inputs) {
    return std::string(error_of([&] { plan.run(inputs); }).what());
  };
  EXPECT_THAT(fails({Tensor::zeros(DType::f32, {3})}),
              HasSubstr("input 'x' was planned as f32[2], got f32[3]"));
  EXPECT_THAT(fails({}), HasSubstr("the plan has 1 inputs, got 0"));
  EXPECT_FALSE(plan.accepts(std::vector<Tensor>{Tensor::zeros(DType::f64, {2})}));
}

TEST(Plan, AMissingKernelIsNamed) {
  auto graph = std::make_unique<Graph>();
  Value* const x = graph->add_input("x", {DType::c64, SymShape{2}});
  Node* const node = graph->add_node("Neg", "", {x}, {"y"});
  node->set_name("negate");
  node->output()->set_type({DType::c64, SymShape{2}});
  graph->add_output(node->output());
  EXPECT_THAT(error_of([&] { Plan plan(std::move(graph)); }).what(),
              HasSubstr("no cpu kernel for Neg(c64[2]) (Neg node 'negate')"));
}

}  // namespace
}  // namespace graft
