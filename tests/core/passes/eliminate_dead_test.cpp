#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "tests/core/growth.h"

namespace graft::passes {
namespace {

TEST(EliminateDead, KeepsOutputsAndUpdates) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2}}));
  Value* const unused = graph.add_initializer("unused", Tensor::scalar(1.0F));
  Value* const state = graph.add_initializer("state", Tensor::zeros(DType::f32, {2}));
  state->is_variable = true;
  const Expr dead_end = exp(exp(x)) + builder.expr(unused);
  call_internal("Assign", {builder.expr(state), x});
  graph.add_output((-x).value());
  EXPECT_NE(dead_end.value(), nullptr);
  EXPECT_TRUE(eliminate_dead(graph));
  EXPECT_EQ(print(graph), R"(g(x: f32[2]) -> (neg: f32[2])
  state: f32[2] = variable
  assign: f32[2] = ai.graft.Assign(state, x)
  neg: f32[2] = Neg(x)
)");
  EXPECT_FALSE(eliminate_dead(graph));
}

TEST(EliminateDead, TimeGrowsWithTheInitializers) {
  const auto removing = [](int count) {
    auto graph = std::make_unique<Graph>();
    for (int i = 0; i < count; ++i) graph->add_initializer("", Tensor::scalar(1.0F));
    return [graph = std::move(graph)] { EXPECT_TRUE(eliminate_dead(*graph)); };
  };
  EXPECT_LT(testing::growth(2000, removing), testing::kFarFromProportional);
}

}  // namespace
}  // namespace graft::passes
