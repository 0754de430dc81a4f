#include "core/layers/fix_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// x w, where the branch has its own w: all elements are `weight`.
std::shared_ptr<Graph> branch(Graph& outer, const std::string& name, float weight) {
  auto body = std::make_shared<Graph>(name, &outer);
  Value* const w =
      body->add_initializer(name + ".weight", Tensor::full(DType::f32, {2, 2}, weight));
  Node* const product = body->add_node("MatMul", "", {outer.find("x"), w}, {name + "_y"});
  product->output()->set_type({DType::f32, SymShape{Dim("N"), 2}});
  body->add_output(product->output());
  return body;
}

/// y = x w, with a w for 8000 and one for other rates.
Model model_of_two_rates() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}});
  Value* const rate = graph.add_input("rate", {DType::i64, SymShape(Shape{})});
  Builder builder(graph);
  const Expr is_low =
      equal(builder.expr(rate), builder.expr(builder.constant(Tensor::scalar<std::int64_t>(8000))));
  Node* const chosen = graph.add_node(
      "If", "", {is_low.value()}, {"y"},
      {{"then_branch", branch(graph, "low", 1.0F)}, {"else_branch", branch(graph, "high", 2.0F)}});
  chosen->output()->set_type({DType::f32, SymShape{Dim("N"), 2}});
  graph.add_output(chosen->output());
  return model;
}

TEST(FixInput, TakesTheBranchesThatTheInputChooses) {
  Model model = model_of_two_rates();
  const auto choosing = edit::inputs_that_choose_weights(model.graph());
  ASSERT_EQ(choosing.size(), 1U);
  EXPECT_EQ(choosing[0]->name(), "rate");
  edit::fix_input(model, "rate", Tensor::scalar<std::int64_t>(16000));
  verify(model);
  EXPECT_EQ(model.graph().node_count(), 1U);
  EXPECT_TRUE(model.graph().nodes().front()->is("MatMul"));
  EXPECT_EQ(model.graph().outputs()[0]->name(), "y");
  EXPECT_EQ(model.graph().initializers().size(), 1U) << "the other branch is gone";
  EXPECT_TRUE(edit::inputs_that_choose_weights(model.graph()).empty());
  Session session(model);
  EXPECT_THAT(session.input_names(), ElementsAre("x"));
  const Tensor y = session.run({Tensor::from<float>({1, 2}, {1, 3})}).at(0);
  EXPECT_THAT(y.values<const float>(), ElementsAre(8, 8));
}

TEST(FixInput, RefusesWhatDoesNotFitAndChangesNothing) {
  Model model = model_of_two_rates();
  EXPECT_THAT(error_of([&] { edit::fix_input(model, "sr", Tensor::scalar(1.0F)); }).what(),
              HasSubstr("no input is called 'sr'; inputs are: 'x', 'rate'"));
  EXPECT_EQ(error_of([&] { edit::fix_input(model, "rate", Tensor::scalar(1.0F)); }).kind(),
            ErrorKind::type);
  EXPECT_EQ(error_of([&] {
              edit::fix_input(model, "x", Tensor::zeros(DType::f32, {3, 3}));
            }).kind(),
            ErrorKind::shape);
  EXPECT_EQ(model.graph().inputs().size(), 2U);
}

}  // namespace
}  // namespace graft
