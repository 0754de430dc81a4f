#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/passes/pass_watch.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const Shape& shape, const std::vector<double>& values) {
  return Tensor::from(shape, values).cast(DType::f32);
}

/// x -> x `op` number
std::shared_ptr<Graph> modifier(std::string_view op, double number) {
  auto graph = std::make_shared<Graph>("modifier");
  Value* const x = graph->add_input("x", {DType::f32, std::nullopt});
  Value* const constant =
      graph->add_initializer("number", Tensor::scalar(static_cast<float>(number)));
  graph->add_output(graph->add_node(op, "", {x, constant}, {"y"})->output());
  return graph;
}

Model model_of(const Shape& q, const Shape& k, Attributes attributes) {
  Model model;
  model.set_opset("", 26);
  model.set_opset("ai.onnx.preview", 1);
  Graph& graph = model.graph();
  const std::vector<Value*> inputs{graph.add_input("q", {DType::f32, SymShape(q)}),
                                   graph.add_input("k", {DType::f32, SymShape(k)}),
                                   graph.add_input("v", {DType::f32, SymShape(k)})};
  Node* const node = graph.add_node("FlexAttention", "ai.onnx.preview", inputs, {"y"}, attributes);
  node->output()->set_type({DType::f32, SymShape(q)});
  graph.add_output(node->output());
  return model;
}

/// Two heads of queries share the one of keys; of one key the probability is 1, times 2.
TEST(FlexAttention, SharesHeadsAndModifiesProbabilities) {
  const passes::PassWatch watch;
  Session session(
      model_of({1, 2, 1, 1}, {1, 1, 1, 1}, {{"prob_mod", AttributeValue(modifier("Mul", 2))}}));
  const std::vector<Tensor> found = session.run(
      {floats({1, 2, 1, 1}, {1, 5}), floats({1, 1, 1, 1}, {7}), floats({1, 1, 1, 1}, {3})});
  EXPECT_TRUE(watch.changed().contains("inline_flex_attention"));
  EXPECT_EQ(found[0].shape(), (Shape{1, 2, 1, 1}));
  EXPECT_THAT(to_double(found[0]), ElementsAre(6, 6));
}

/// Scores times 0 are all equal: the mean of the values.
TEST(FlexAttention, ModifiesScores) {
  Session session(
      model_of({1, 1, 1, 1}, {1, 1, 2, 1}, {{"score_mod", AttributeValue(modifier("Mul", 0))}}));
  const std::vector<Tensor> found = session.run(
      {floats({1, 1, 1, 1}, {1}), floats({1, 1, 2, 1}, {7, -2}), floats({1, 1, 2, 1}, {3, 5})});
  EXPECT_THAT(to_double(found[0]), ElementsAre(4));
}

TEST(FlexAttention, RefusesWhatDoesNotFit) {
  const auto refused = [](const Shape& q, const Shape& k, const Attributes& attributes = {}) {
    return std::string(error_of([&] {
                         Model model = model_of(q, k, attributes);
                         upgrade_opset(model);
                       }).what());
  };
  EXPECT_THAT(refused({1, 1, 1}, {1, 1, 1, 1}), HasSubstr("wanted rank 4"));
  EXPECT_THAT(refused({1, std::int64_t{1} << 31, 1, 1}, {1, 2, 1, 1}),
              HasSubstr("it needs a table of 2147483648"));
  EXPECT_THAT(refused({1, 3, 1, 1}, {1, 2, 1, 1}), HasSubstr("3 heads of Q are no multiple of 2"));
  EXPECT_THAT(refused({1, 1, 1, 1}, {1, 1, 1, 1}, {{"score_mod", 1}}),
              HasSubstr("score_mod is no graph of one input and one output"));
  EXPECT_THAT(refused({1, 1, 1, 1}, {1, 1, 1, 1}, {{"softmax_precision", 7}}),
              HasSubstr("softmax_precision is 7, which is no float type"));
}

}  // namespace
}  // namespace graft::passes
