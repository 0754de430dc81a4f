#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// gradient = Neg(x), z = Neg(Relu(x)), and at the end w, which nobody reads, is updated.
struct Step {
  Step() {
    x = graph.add_input("x", {DType::f32, SymShape(Shape({2, 3}))});
    Value* const lr = graph.add_input("lr", {DType::f32, SymShape(Shape{})});
    Value* const step = graph.add_input("step", {DType::i64, SymShape(Shape{})});
    w = graph.add_initializer("w", Tensor::zeros(DType::f32, {2, 3}));
    w->is_variable = true;
    gradient = graph.add_node("Neg", "", {x}, {"gradient"});
    other = graph.add_node("Relu", "", {x}, {"y"});
    last = graph.add_node("Neg", "", {other->output()}, {"z"});
    update =
        graph.add_node("SgdUpdate", kInternalDomain, {w, gradient->output(), lr, step}, {"w.new"});
    graph.set_outputs({last->output()});
  }

  Node* before_update() const {
    Node* before = nullptr;
    for (const auto& node : graph.nodes()) {
      if (node.get() == update) return before;
      before = node.get();
    }
    return nullptr;
  }

  Graph graph{"step"};
  Value* x = nullptr;
  Value* w = nullptr;
  Node* gradient = nullptr;
  Node* other = nullptr;
  Node* last = nullptr;
  Node* update = nullptr;
};

TEST(UpdateEarly, AnUpdateFollowsItsGradient) {
  Step step;
  passes::infer_shapes(step.graph);
  EXPECT_TRUE(passes::update_early(step.graph));
  EXPECT_EQ(step.before_update(), step.gradient);
  EXPECT_FALSE(passes::update_early(step.graph));
}

TEST(UpdateEarly, ReadersOfTheOldContentComeFirstThroughViewsToo) {
  Step step;
  Value* const shape = step.graph.add_initializer("", Tensor::from<std::int64_t>({2}, {2, 3}));
  Node* const view =
      step.graph.add_node("Reshape", "", {step.w, shape}, {"view"}, {}, step.gradient);
  Node* const reader =
      step.graph.add_node("Add", "", {view->output(), step.x}, {"sum"}, {}, step.last);
  step.graph.add_output(reader->output());
  passes::infer_shapes(step.graph);
  EXPECT_TRUE(passes::update_early(step.graph));
  EXPECT_EQ(step.before_update(), reader);
}

TEST(UpdateEarly, AnUpdateThatReadsAnotherOneFollowsIt) {
  Step step;
  Value* const tied = step.graph.add_initializer("tied", Tensor::zeros(DType::f32, {2, 3}));
  tied->is_variable = true;
  Node* const follower =
      step.graph.add_node("Assign", kInternalDomain, {tied, step.update->output()}, {"tied.new"});
  step.last->set_input(0, tied);
  passes::infer_shapes(step.graph);
  EXPECT_TRUE(passes::update_early(step.graph));
  EXPECT_EQ(step.before_update(), step.gradient);
  EXPECT_EQ(step.graph.next(step.last), follower);
}

}  // namespace
}  // namespace graft
