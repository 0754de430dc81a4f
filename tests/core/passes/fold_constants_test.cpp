#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// What exporters write for flatten(1): the shape computed from the input's.
TEST(FoldConstants, AShapeComputationBecomesAConstant) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4, 2, 3}}));
  Value* const index = graph.add_initializer("zero", Tensor::scalar<std::int64_t>(0));
  const Expr shape = call("Shape", {x});
  const Expr batch = call("Gather", {shape, builder.expr(index)});
  const Expr row = unsqueeze(batch, {0});
  const Expr target = call("Concat", {row, constant_ints(builder, {-1})}, {{"axis", 0}});
  Node* const reshape = graph.add_node("Reshape", "", {x.value(), target.value()}, {"y"});
  graph.add_output(reshape->output());
  settle(graph);
  EXPECT_EQ(print(graph), R"(g(x: f32[4,2,3]) -> (y: f32[4,6])
  concat: i64[2] = {4, -1}
  y: f32[4,6] = Reshape(x, concat)
)");
}

TEST(FoldConstants, VariablesAndRandomOpsStay) {
  Graph graph("g");
  Builder builder(graph);
  Value* const weight = graph.add_initializer("weight", Tensor::from<float>({2}, {1, 2}));
  weight->is_variable = true;
  Value* const fixed = graph.add_initializer("fixed", Tensor::from<float>({2}, {1, 2}));
  const Expr trained = builder.expr(weight) * 2.0;
  const Expr constant = builder.expr(fixed) * 2.0;
  const Expr random = call("Dropout", {builder.expr(fixed)});
  for (const Expr& output : {trained, constant, random}) graph.add_output(output.value());
  EXPECT_TRUE(fold_constants(graph));
  EXPECT_NE(graph.outputs()[0]->producer(), nullptr);
  ASSERT_TRUE(graph.outputs()[1]->is_initializer());
  EXPECT_EQ(graph.outputs()[1]->initializer().values<const float>()[1], 4.0F);
  EXPECT_NE(graph.outputs()[2]->producer(), nullptr);
  EXPECT_FALSE(fold_constants(graph)) << "nothing is left to fold";
}

/// Else one mask would serve all steps.
TEST(FoldConstants, MasksOfTrainingStay) {
  Graph graph("g");
  Builder builder(graph);
  Value* const ones = graph.add_initializer("ones", Tensor::full(DType::f32, {8}, 1.0));
  graph.add_output(call_internal("DropoutTraining", {builder.expr(ones)}).value());
  EXPECT_FALSE(fold_constants(graph));
}

TEST(FoldConstants, EyeLikeNeedsAShapeOnly) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2, 2}}));
  graph.add_output(call("EyeLike", {x}).value());
  EXPECT_TRUE(fold_constants(graph));
  EXPECT_EQ(to_double(graph.outputs()[0]->initializer()), (std::vector<double>{1, 0, 0, 1}));
}

/// One number expanded to more than 64 MB stays a node: files must not fill the memory.
TEST(FoldConstants, LargeResultsStay) {
  Graph graph("g");
  Builder builder(graph);
  Value* const one = graph.add_initializer("one", Tensor::scalar(1.0F));
  const Expr large =
      call("Expand", {builder.expr(one), constant_ints(builder, {1 << 12, 1 << 13})});
  graph.add_output(large.value());
  EXPECT_FALSE(fold_constants(graph));
}

}  // namespace
}  // namespace graft::passes
