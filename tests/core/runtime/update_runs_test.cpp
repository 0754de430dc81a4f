#include "core/runtime/update_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/order.h"
#include "core/tensor/tensor.h"

namespace graft {
namespace {

using testing::ElementsAre;

class UpdateRuns : public testing::Test {
 protected:
  Value* variable(const std::string& name) {
    Value* const value = graph_.add_initializer(name, Tensor::zeros(DType::f32, {2}));
    value->is_variable = true;
    return value;
  }
  Value* update(Value* parameter, Value* gradient, bool has_workspace = false) {
    Node* const node =
        graph_.add_node("SgdUpdate", kInternalDomain, {parameter, gradient, rate_, step_},
                        {parameter->name() + ".new" + std::to_string(count_++)});
    steps_.push_back({node, has_workspace});
    return node->output();
  }
  void other() {
    steps_.push_back({graph_.add_node("Relu", "", {g_}, {"y" + std::to_string(count_++)}), false});
  }

  Graph graph_{"net"};
  int count_ = 0;
  Value* g_ = graph_.add_input("g", {DType::f32, SymShape{2}});
  Value* rate_ = graph_.add_input("rate", {DType::f32, SymShape(Shape{})});
  Value* step_ = graph_.add_input("step", {DType::i64, SymShape(Shape{})});
  Value* p_ = variable("p");
  Value* q_ = variable("q");
  Value* r_ = variable("r");
  std::vector<PlannedStep> steps_;
};

TEST_F(UpdateRuns, JoinUpdatesThatFollowOneAnother) {
  other();
  update(p_, g_);
  update(q_, g_);
  update(r_, g_);
  other();
  EXPECT_THAT(update_runs(steps_), ElementsAre(1, 4, 3, 4, 5));
}

TEST_F(UpdateRuns, EndWhereOneNeedsAnother) {
  Value* const moved = update(p_, g_);
  update(q_, moved);
  update(r_, q_);
  EXPECT_THAT(update_runs(steps_), ElementsAre(1, 2, 3)) << "reads what another writes";
}

TEST_F(UpdateRuns, EndWhereOneWritesWhatAnotherReads) {
  update(p_, q_);
  update(q_, g_);
  update(p_, g_);
  EXPECT_THAT(update_runs(steps_), ElementsAre(1, 3, 3));
}

TEST_F(UpdateRuns, LeaveOutWhatHasAWorkspace) {
  update(p_, g_);
  update(q_, g_, true);
  update(r_, g_);
  EXPECT_THAT(update_runs(steps_), ElementsAre(1, 2, 3));
  EXPECT_TRUE(update_runs({}).empty());
}

TEST_F(UpdateRuns, JoinAnUpdateAndOneThatSumsItsGradient) {
  update(p_, g_);
  Value* const ones = graph_.add_input("ones", {DType::f32, SymShape(Shape{1, 3})});
  Value* const rows = graph_.add_input("rows", {DType::f32, SymShape(Shape{3, 2})});
  steps_.push_back({graph_.add_node("SgdProductUpdate", kInternalDomain,
                                    {q_, ones, rate_, step_, nullptr, rows}, {"q.new"}),
                    false});
  Node* const other_rule =
      graph_.add_node("AdamUpdate", kInternalDomain, {r_, g_, rate_, step_}, {"r.new"});
  steps_.push_back({other_rule, false});
  EXPECT_THAT(update_runs(steps_), ElementsAre(2, 2, 3));
}

TEST_F(UpdateRuns, AreMadeByGathering) {
  Value* const moved = update(p_, g_);
  other();
  Node* const average = graph_.add_node("Assign", kInternalDomain, {r_, moved}, {"average"});
  Node* const next = graph_.add_node("Relu", "", {average->output()}, {"next"});
  Value* const last = update(q_, g_);
  const Node* const between = steps_[1].node;
  gather_updates(graph_);
  EXPECT_THAT(node_order(graph_),
              ElementsAre(between, moved->producer(), average, next, last->producer()));
}

}  // namespace
}  // namespace graft
