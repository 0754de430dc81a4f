#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/graph/order.h"
#include "core/ops/builder.h"
#include "core/passes/order_nodes.h"
#include "core/runtime/arena.h"
#include "tests/core/growth.h"

namespace graft {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> list;
  for (const auto& node : graph.nodes()) list.push_back(node->output(0)->name());
  return list;
}

/// x [256], variables w and v of the same size, and the step's rate and count.
class OrderNodesTest : public ::testing::Test {
 protected:
  OrderNodesTest() {
    x_ = graph_.add_input("x", {DType::f32, SymShape{256}});
    rate_ = graph_.add_input("rate", {DType::f32, SymShape(Shape{})});
    count_ = graph_.add_input("count", {DType::i64, SymShape(Shape{})});
    for (Value** variable : {&w_, &v_}) {
      *variable =
          graph_.add_initializer(variable == &w_ ? "w" : "v", Tensor::zeros(DType::f32, {256}));
      (*variable)->is_variable = true;
    }
  }
  Value* add(std::string_view op, const std::vector<Value*>& inputs, const std::string& name) {
    return builder_.node(op, "", inputs, std::vector<std::string>{name})->output(0);
  }
  void update(Value* variable, Value* gradient) {
    builder_.node("SgdUpdate", kInternalDomain, {variable, gradient, rate_, count_},
                  std::vector<std::string>{"new_" + variable->name()});
  }

  Graph graph_;
  Builder builder_{graph_};
  Value* x_;
  Value* rate_;
  Value* count_;
  Value* w_;
  Value* v_;
};

TEST_F(OrderNodesTest, AnUpdateRunsBehindTheLastReaderOfItsVariable) {
  Value* const dw = add("Exp", {x_}, "dw");
  Value* const reader = add("Mul", {x_, w_}, "reader");
  Value* const dv = add("Mul", {reader, reader}, "dv");
  Value* const late = add("Exp", {x_}, "late");
  update(w_, dw);
  update(v_, dv);
  graph_.add_output(late);
  EXPECT_TRUE(passes::move_updates(graph_));
  EXPECT_THAT(names(graph_), ElementsAre("dw", "reader", "new_w", "dv", "new_v", "late"));
  plan_arena(graph_, WorkspaceBytes(graph_));  // refuses a variable that is read after its update
  EXPECT_FALSE(passes::move_updates(graph_)) << "there is nothing left to move";
}

TEST_F(OrderNodesTest, AReaderThroughAViewIsAReader) {
  Value* const dw = add("Exp", {x_}, "dw");
  Value* const shape = builder_.constant(Tensor::from<std::int64_t>({2}, {16, 16}));
  Value* const view = add("Reshape", {w_, shape}, "view");
  Value* const late = add("Exp", {view}, "late");
  update(w_, dw);
  graph_.add_output(late);
  EXPECT_FALSE(passes::move_updates(graph_));
}

/// A global norm reads all gradients before the first update.
TEST_F(OrderNodesTest, UpdatesStayBehindWhatTheirGradientsWaitFor) {
  Value* const dw = add("Exp", {x_}, "dw");
  Value* const dv = add("Abs", {x_}, "dv");
  Value* const both = add("Add", {dw, dv}, "both");
  Value* const clipped_w = add("Div", {dw, both}, "clipped_w");
  Value* const clipped_v = add("Div", {dv, both}, "clipped_v");
  update(w_, clipped_w);
  update(v_, clipped_v);
  passes::move_updates(graph_);
  EXPECT_THAT(names(graph_),
              ElementsAre("dw", "dv", "both", "clipped_w", "new_w", "clipped_v", "new_v"));
}

/// The sum frees a large value and makes a small one, so it goes before what only takes memory.
TEST_F(OrderNodesTest, WhatFreesMemoryGoesFirst) {
  Value* const large = add("Exp", {x_}, "large");
  Value* const other = add("Abs", {x_}, "other");
  Value* const sum = add("ReduceSum", {large}, "sum");
  graph_.add_output(other);
  graph_.add_output(sum);
  EXPECT_FALSE(passes::move_updates(graph_));
  EXPECT_TRUE(passes::order_for_memory(graph_));
  EXPECT_THAT(names(graph_), ElementsAre("large", "sum", "other"));
}

TEST_F(OrderNodesTest, AWorseOrderIsNotKept) {
  Value* const large = add("Exp", {x_}, "large");
  Value* const other = add("Abs", {x_}, "other");
  Value* const sum = add("ReduceSum", {large}, "sum");
  Value* const product = add("Mul", {other, sum}, "product");
  graph_.add_output(product);
  const std::size_t given = plan_arena(graph_, WorkspaceBytes(graph_)).bytes;
  EXPECT_LT(order_and_plan(graph_, WorkspaceBytes(graph_)).bytes, given);
  const std::vector<Node*> best = node_order(graph_);
  order_and_plan(graph_, WorkspaceBytes(graph_));
  EXPECT_EQ(node_order(graph_), best);
}

/// A sum of values that may all be made first.
TEST_F(OrderNodesTest, TimeGrowsWithTheGraph) {
  const auto ordering = [](int count) {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph);
    Value* const x = graph->add_input("x", {DType::f32, SymShape{64}});
    Expr sum = builder.expr(x);
    for (int i = 0; i < count / 2; ++i) {
      const Expr part = exp(builder.expr(x));
      sum = sum + part;
    }
    graph->add_output(sum.value());
    return [graph = std::move(graph)] { passes::order_for_memory(*graph); };
  };
  EXPECT_LT(testing::growth(1000, ordering), testing::kFarFromProportional);
}

TEST_F(OrderNodesTest, TimeGrowsWithTheInputsOfANode) {
  const auto ordering = [](int count) {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph);
    const Expr x = builder.expr(graph->add_input("x", {DType::f32, SymShape{1}}));
    std::vector<Expr> parts;
    for (int i = 0; i < count; ++i) parts.push_back(exp(x));
    graph->add_output(call("Sum", parts).value());
    return [graph = std::move(graph)] { passes::order_for_memory(*graph); };
  };
  EXPECT_LT(testing::growth(1000, ordering), testing::kFarFromProportional);
}

}  // namespace
}  // namespace graft
