#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "tests/core/error_of.h"
#include "tests/core/other_limits.h"

namespace graft::passes {
namespace {

using testing::OtherLimits;

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

/// What was evaluated tells a shape that could not be inferred before.
TEST(FoldConstants, InferredOnesAreInferredAgainBehindWhatWasEvaluated) {
  Graph graph("g");
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{4, 2, 3})}));
  const Expr rows =
      builder.expr(graph.add_initializer("rows", Tensor::from<std::int64_t>({1}, {8})));
  const Expr target = call("Concat", {rows, constant_ints(builder, {-1})}, {{"axis", 0}});
  Node* const reshape = graph.add_node("Reshape", "", {x.value(), target.value()}, {"y"});
  Node* const relu = graph.add_node("Relu", "", {reshape->output()}, {"z"});
  graph.add_output(relu->output());
  EXPECT_TRUE(infer_shapes(graph));
  EXPECT_FALSE(relu->output()->shape() && relu->output()->shape()->known());
  EXPECT_TRUE(fold_inferred_constants(graph));
  EXPECT_EQ(relu->output()->known_shape(), (Shape{8, 3}));
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

int count_constants(const Graph& graph) {
  int count = 0;
  for (const Value* output : graph.outputs()) count += output->is_initializer() ? 1 : 0;
  return count;
}

/// Three results of 400 bytes, each of which reads 4 bytes and a shape of 8: the graph comes with
/// 4 + 3 * 8 bytes.
std::unique_ptr<Graph> three_expansions() {
  auto graph = std::make_unique<Graph>("g");
  Builder builder(*graph);
  const Expr one = builder.expr(graph->add_initializer("one", Tensor::scalar(1.0F)));
  for (int i = 0; i < 3; ++i) {
    graph->add_output(call("Expand", {one, constant_ints(builder, {100})}).value());
  }
  return graph;
}

TEST(FoldConstants, AllResultsTogetherHaveALimit) {
  for (const auto& [bytes, folded] :
       {std::pair(3 * 412, 3), std::pair(3 * 412 - 1, 2), std::pair(412, 1), std::pair(411, 0)}) {
    const OtherLimits changed({.folded_bytes = bytes, .folded_share = 0});
    const auto graph = three_expansions();
    fold_constants(*graph);
    EXPECT_EQ(count_constants(*graph), folded) << bytes;
  }
}

TEST(FoldConstants, TheLimitGrowsWithTheConstantsThatAGraphComesWith) {
  const OtherLimits changed({.folded_bytes = 3 * 412 - 10 * 28, .folded_share = 10});
  const auto graph = three_expansions();
  fold_constants(*graph);
  EXPECT_EQ(count_constants(*graph), 3);
}

/// Otherwise each turn of a loop, each branch and each copy would bring a limit of its own.
TEST(FoldConstants, CallsAndCopiesShareTheLimit) {
  const OtherLimits changed({.folded_bytes = 412, .folded_share = 0});
  const auto graph = three_expansions();
  EXPECT_TRUE(fold_constants(*graph));
  EXPECT_FALSE(fold_constants(*graph));
  EXPECT_FALSE(fold_constants(*graph->clone()));
  EXPECT_EQ(count_constants(*graph), 1);
}

TEST(FoldConstants, StringsCountWithTheirCharacters) {
  Graph graph("g");
  Builder builder(graph);
  Expr text = builder.expr(
      graph.add_initializer("text", Tensor::from_strings({1}, {std::string(1000, 'a')})));
  for (int i = 0; i < 40; ++i) text = call("StringConcat", {text, text});
  graph.add_output(text.value());
  fold_constants(graph);
  std::size_t longest = 0;
  for (const Value* value : graph.initializers()) {
    longest = std::max(longest, value->initializer().strings().front().size());
  }
  EXPECT_GT(longest, 1'000'000U);
  EXPECT_LT(longest, static_cast<std::size_t>(limits().folded_bytes));
  EXPECT_EQ(graph.outputs().front()->initializer().defined(), false);
}

/// They cannot be constants of a graph, so their kernels are not asked: this one would refuse.
TEST(FoldConstants, SequencesAreNotMade) {
  Graph graph("g");
  Builder builder(graph);
  Value* const x = graph.add_initializer("x", Tensor::zeros(DType::f32, {4}));
  graph.add_output(call("SplitToSequence", {builder.expr(x), constant_ints(builder, {9})}).value());
  EXPECT_FALSE(fold_constants(graph));
}

/// A window of a million elements over a thousand: a small result, but hours of work.
TEST(FoldConstants, LongWorkIsLeftToTheRun) {
  Graph graph("g");
  Builder builder(graph);
  Value* const x = graph.add_initializer("x", Tensor::zeros(DType::f32, {1, 1, 100'000}));
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {1, 1, 50'000}));
  graph.add_output(call("Conv", {builder.expr(x), builder.expr(w)}).value());
  const std::vector<std::int64_t> window{50'000};
  graph.add_output(call("MaxPool", {builder.expr(x)}, {{"kernel_shape", window}}).value());
  EXPECT_FALSE(fold_constants(graph));
}

TEST(Settle, RanksHaveALimit) {
  const auto expanded = [](std::int64_t rank) {
    Graph graph("g");
    Builder builder(graph);
    const Expr one = builder.expr(graph.add_initializer("one", Tensor::scalar(1.0F)));
    const std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
    graph.add_output(call("Expand", {one, constant_ints(builder, dims)}).value());
  };
  const OtherLimits changed({.rank = 8});
  EXPECT_NO_THROW(expanded(8));
  EXPECT_EQ(kind_of([&] { expanded(9); }), ErrorKind::unsupported);
}

/// Each condition is what the branch before it computes.
TEST(Settle, BranchesThatWaitForEachOtherHaveALimit) {
  const auto chain = [](int length) {
    auto graph = std::make_unique<Graph>("g");
    Value* go = graph->add_initializer("go", Tensor::scalar(true));
    for (int i = 0; i < length; ++i) {
      Attributes bodies;
      for (const char* name : {"then_branch", "else_branch"}) {
        auto body = std::make_shared<Graph>(name + std::to_string(i), graph.get());
        body->add_output(body->add_node("Not", "", {go}, {"not" + std::to_string(i)})->output());
        bodies.set({name, AttributeValue(std::move(body))});
      }
      go = graph->add_node("If", "", {go}, {"go" + std::to_string(i)}, std::move(bodies))->output();
    }
    graph->add_output(go);
    return graph;
  };
  const OtherLimits changed({.settled_nodes = 10, .settled_share = 0});
  const auto few = chain(4);  // 4 + 3 + 2 + 1 nodes
  settle(*few);
  EXPECT_TRUE(few->outputs().front()->is_initializer());
  const auto many = chain(6);  // 6 + 5
  settle(*many);
  EXPECT_EQ(many->node_count(), 5U);
}

}  // namespace
}  // namespace graft::passes
