#include "core/passes/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> list;
  for (const auto& node : graph.nodes()) list.push_back(node->output(0)->name());
  return list;
}

/// x -> a -> b -> loss; behind it, late_b reads b, and late_a reads a.
class RecomputeTest : public testing::Test {
 protected:
  RecomputeTest() {
    Builder builder(graph_);
    const auto add = [&](std::string_view op, const std::vector<Value*>& inputs,
                         const std::string& name) {
      return builder.node(op, "", inputs, std::vector<std::string>{name})->output(0);
    };
    Value* const x = graph_.add_input("x", {DType::f32, SymShape{2}});
    a_ = add("Exp", {x}, "a");
    b_ = add("Abs", {a_}, "b");
    loss_ = add("ReduceSum", {b_}, "loss");
    late_b_ = add("Mul", {b_, loss_}, "late_b");
    late_a_ = add("Mul", {a_, late_b_}, "late_a");
    graph_.set_outputs({loss_, late_a_});
  }
  std::vector<passes::Repeat> recompute(const std::unordered_set<const Value*>& dropped,
                                        const std::unordered_set<const Value*>& apart = {}) {
    return passes::recompute(graph_, loss_->producer(), dropped, apart);
  }

  Graph graph_;
  Value* a_;
  Value* b_;
  Value* loss_;
  Value* late_b_;
  Value* late_a_;
};

TEST_F(RecomputeTest, ACopyStartsAtWhatIsKept) {
  recompute({b_});
  EXPECT_THAT(names(graph_), ElementsAre("a", "b", "loss", "b/again", "late_b", "late_a"));
  EXPECT_EQ(late_b_->producer()->input(0)->producer()->input(0), a_);
  verify(graph_);
}

TEST_F(RecomputeTest, AChainIsMadeOnceForAllItsReaders) {
  recompute({a_, b_});
  EXPECT_THAT(names(graph_),
              ElementsAre("a", "b", "loss", "a/again", "b/again", "late_b", "late_a"));
  EXPECT_EQ(late_a_->producer()->input(0)->name(), "a/again");
  verify(graph_);
}

TEST_F(RecomputeTest, AValueApartIsMadeAnewForEachReader) {
  const std::string before = print(graph_);
  const std::vector<passes::Repeat> repeats = recompute({a_, b_}, {a_});
  EXPECT_EQ(repeats.size(), 3U);
  EXPECT_EQ(graph_.nodes().size(), 8U);
  const Node* const first = late_b_->producer()->input(0)->producer()->input(0)->producer();
  const Node* const second = late_a_->producer()->input(0)->producer();
  EXPECT_NE(first, second);
  EXPECT_TRUE(first->is("Exp") && second->is("Exp"));
  EXPECT_EQ(std::next(graph_.nodes().begin(), 6)->get(), second);  // right before late_a
  verify(graph_);
  passes::remove_repeats(graph_, repeats);
  EXPECT_EQ(print(graph_), before);
}

/// x w -> loss; behind it, `first` reads x w, w is updated, `second` reads x w.
TEST(Recompute, WhatAnUpdatedVariableMadeIsNotMadeAnew) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2}}));
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {2}));
  w->is_variable = true;
  const Expr product = x * builder.expr(w);
  const Expr loss = reduce_sum(product, {}, false);
  const Expr first = product * loss;
  builder.node("Assign", kInternalDomain, {w, first.value()}, 1);
  const Expr second = product + loss;
  graph.set_outputs({loss.value(), second.value()});
  const std::unordered_set<const Value*> dropped{product.value()};
  EXPECT_EQ(passes::recompute(graph, loss.value()->producer(), dropped, dropped).size(), 1U);
  EXPECT_EQ(second.value()->producer()->input(0), first.value()->producer()->input(0));
  EXPECT_NE(second.value()->producer()->input(0), product.value());
}

/// x w -> loss; behind it, w is updated without the product, and only `late` reads that. The w of
/// the product is w itself, or a view of it.
TEST(Recompute, WhatIsReadBehindTheUpdateAloneIsKept) {
  for (const bool is_view : {false, true}) {
    Graph graph;
    Builder builder(graph);
    const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2}}));
    Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {2}));
    w->is_variable = true;
    const Expr product = x * (is_view ? reshape(builder.expr(w), {1, 2}) : builder.expr(w));
    const Expr loss = reduce_sum(product, {}, false);
    const Expr gradient = x * loss;
    builder.node("Assign", kInternalDomain, {w, gradient.value()}, 1);
    const Expr late = product * loss;
    graph.set_outputs({loss.value(), late.value()});
    EXPECT_TRUE(passes::recompute(graph, loss.value()->producer(), {product.value()}).empty());
    EXPECT_EQ(late.value()->producer()->input(0), product.value());
  }
}

TEST_F(RecomputeTest, CopiesCanBeTakenOutAgain) {
  const std::string before = print(graph_);
  const std::vector<passes::Repeat> repeats = recompute({a_, b_});
  EXPECT_NE(print(graph_), before);
  passes::remove_repeats(graph_, repeats);
  EXPECT_EQ(print(graph_), before);
  verify(graph_);
}

TEST(CanRepeat, NotWhatDrawsOrUpdates) {
  Graph graph;
  Value* const x = graph.add_input("x", {DType::f32, SymShape{4, 3}});
  const auto node = [&](std::string_view op, std::string_view domain, int inputs) {
    return graph.add_node(op, domain, std::vector<Value*>(static_cast<std::size_t>(inputs), x),
                          {graph.unique_name("y")});
  };
  EXPECT_TRUE(passes::can_repeat(*node("Exp", "", 1)));
  EXPECT_TRUE(passes::can_repeat(*node("DropoutTraining", kInternalDomain, 1)))
      << "its mask comes from seed and step";
  EXPECT_TRUE(passes::can_repeat(*node("BatchNormTraining", kInternalDomain, 5)))
      << "without the running statistics";
  EXPECT_FALSE(passes::can_repeat(*node("RandomNormalLike", "", 1)));
  EXPECT_FALSE(passes::can_repeat(*node("Dropout", "", 1)));
  EXPECT_FALSE(passes::can_repeat(*node("SgdUpdate", kInternalDomain, 4)));
}

TEST(Recompute, ASecondNormalizationLeavesTheRunningStatisticsAlone) {
  Graph graph;
  Value* const x = graph.add_input("x", {DType::f32, SymShape{4, 3}});
  std::vector<Value*> inputs{x};
  for (const char* name : {"scale", "bias", "mean", "var"}) {
    inputs.push_back(graph.add_initializer(name, Tensor::zeros(DType::f32, {3})));
    inputs.back()->is_variable = true;
  }
  Builder builder(graph);
  Node* const norm = builder.node("BatchNormTraining", kInternalDomain, inputs, 5);
  const Expr loss = reduce_sum(builder.expr(norm->output(0)), {}, false);
  const Expr late = builder.expr(norm->output(0)) * loss;
  graph.set_outputs({loss.value(), late.value()});
  const std::vector<passes::Repeat> repeats =
      passes::recompute(graph, loss.value()->producer(), {norm->output(0)});
  ASSERT_EQ(repeats.size(), 1U);
  const Node& again = *repeats.front().node;
  EXPECT_EQ(late.value()->producer()->input(0), again.output(0));
  for (const int running : {3, 4}) {
    EXPECT_EQ(again.input(running), nullptr);
    EXPECT_EQ(again.output(running), nullptr);
  }
  passes::infer_shapes(graph);
  verify(graph);
}

}  // namespace
}  // namespace graft
