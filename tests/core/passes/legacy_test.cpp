// Forms of opsets 1 to 6, by what they compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/print.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft::passes {
namespace {

using graft::testing::call_old_op;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(const Shape& shape, const std::vector<double>& values) {
  return Tensor::from(shape, values).cast(DType::f32);
}

/// B's dims stand for those of A from `axis` on: here one number a row.
TEST(Legacy, BroadcastsFromAnAxis) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = floats({2}, {10, 20});
  const Tensor sum = call_old_op("Add", 6, {a, b}, {{"broadcast", 1}, {"axis", 0}});
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(to_double(sum), ElementsAre(11, 12, 13, 24, 25, 26));
  const Tensor less = call_old_op("Less", 6, {a, b}, {{"broadcast", 1}, {"axis", 0}});
  EXPECT_THAT(to_double(less), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(Legacy, BroadcastsToTheLastAxes) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(to_double(call_old_op("Mul", 6, {a, floats({3}, {1, 0, 2})}, {{"broadcast", 1}})),
              ElementsAre(1, 0, 6, 4, 0, 12));
  EXPECT_THAT(to_double(call_old_op("Sub", 1, {a, a},
                                    {{"consumed_inputs", std::vector<std::int64_t>{0, 0}}})),
              ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Legacy, RefusesWhatDoesNotFitBehindTheAxis) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Error error = error_of([&] {
    call_old_op("Add", 6, {a, floats({3, 1}, {1, 2, 3})}, {{"broadcast", 1}, {"axis", 1}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_THAT(error.what(), HasSubstr("does not fit A from axis 1 on"));
}

/// Slopes belonged to axis 1, not to the last.
TEST(Legacy, PReluHasASlopeAChannel) {
  const Tensor x = floats({1, 2, 2}, {-1, 1, -1, 1});
  EXPECT_THAT(to_double(call_old_op("PRelu", 6, {x, floats({2}, {2, 3})})),
              ElementsAre(-2, 1, -3, 1));
  EXPECT_THAT(to_double(call_old_op("PRelu", 6, {x, floats({1}, {2})})), ElementsAre(-2, 1, -2, 1));
}

TEST(Legacy, TypesHadNames) {
  const Tensor cast = call_old_op("Cast", 5, {floats({2}, {1.7, -2.2})}, {{"to", "INT32"}});
  EXPECT_EQ(cast.dtype(), DType::i32);
  EXPECT_THAT(to_double(cast), ElementsAre(1, -2));
  const Error error = error_of([&] {
    call_old_op("Cast", 5, {floats({1}, {1})}, {{"to", "FLOATY"}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::model);
}

TEST(Legacy, ListsWereAttributes) {
  const Tensor x = floats({1, 2}, {1, 2});
  EXPECT_EQ(call_old_op("Reshape", 4, {x}, {{"shape", std::vector<std::int64_t>{2, 1}}}).shape(),
            (Shape{2, 1}));
  EXPECT_THAT(
      to_double(call_old_op("Pad", 1, {x}, {{"paddings", std::vector<std::int64_t>{0, 1, 0, 0}}})),
      ElementsAre(0, 1, 2));
  const Tensor image = floats({1, 1, 1, 2}, {1, 2});
  EXPECT_THAT(to_double(call_old_op("Upsample", 1, {image},
                                    {{"height_scale", 1.0F}, {"width_scale", 2.0F}})),
              ElementsAre(1, 1, 2, 2));
}

/// 1.0507 * 1.6732 * (e^-1 - 1), where later forms have more digits.
TEST(Legacy, SeluHadShorterConstants) {
  EXPECT_NEAR(to_double(call_old_op("Selu", 1, {floats({1}, {-1})}))[0], -1.1112877, 1e-6);
}

TEST(Legacy, NormsHadAFloatExponent) {
  const auto exponent_of = [](float p) {
    Model model;
    model.set_opset("", 1);
    Graph& graph = model.graph();
    Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 1, 2}});
    Node* const pool = graph.add_node("GlobalLpPool", "", {x}, {"y"}, {{"p", AttributeValue(p)}});
    graph.add_output(pool->output());
    upgrade_opset(model);
    return graph.outputs()[0]->producer()->attributes.get_int("p", 0);
  };
  EXPECT_EQ(exponent_of(3.0F), 3);
  for (const float p : {1.5F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(error_of([&] { exponent_of(p); }).kind(), ErrorKind::unsupported);
  }
}

/// Files of the time state no types within the graph: ranks come from inference on the way.
TEST(Legacy, RanksAreInferredOnTheWay) {
  Model model;
  model.set_opset("", 6);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3, 4}});
  Value* const bias = graph.add_initializer("bias", floats({3}, {1, 2, 3}));
  Node* const relu = graph.add_node("Relu", "", {x}, {"r"});
  Node* const sum =
      graph.add_node("Add", "", {relu->output(), bias}, {"y"}, {{"axis", 1}, {"broadcast", 1}});
  graph.add_output(sum->output());
  upgrade_opset(model);
  EXPECT_EQ(*graph.outputs()[0]->shape(), (SymShape{2, 3, 4}));
}

TEST(Legacy, UnknownRanksAreRefused) {
  Model model;
  model.set_opset("", 6);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, std::nullopt});
  Value* const bias = graph.add_initializer("bias", floats({3}, {1, 2, 3}));
  graph.add_output(
      graph.add_node("Add", "", {x, bias}, {"y"}, {{"axis", 1}, {"broadcast", 1}})->output());
  const Error error = error_of([&] { upgrade_opset(model); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("the rank of input 0 is not known"));
}

}  // namespace
}  // namespace graft::passes
