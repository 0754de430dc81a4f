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
  std::vector<passes::Repeat> recompute(const std::unordered_set<const Value*>& dropped) {
    return passes::recompute(graph_, loss_->producer(), dropped);
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
