#include <gmock/gmock.h>

#include <cmath>

#include "tests/core/error_of.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using testing::rule_gradients;

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}
Tensor number(float value) {
  return Tensor::scalar(value);
}

TEST(Clip, BoundsAreOptional) {
  const Tensor x = row({-2, 0, 3});
  EXPECT_THAT(floats(call_op("Clip", {x, number(-1), number(1)})[0]), ElementsAre(-1, 0, 1));
  EXPECT_THAT(floats(call_op("Clip", {x, number(-1)})[0]), ElementsAre(-1, 0, 3));
  EXPECT_THAT(floats(call_op("Clip", {x, Tensor(), number(1)})[0]), ElementsAre(-2, 0, 1));
  EXPECT_THAT(floats(call_op("Clip", {row({-INFINITY, INFINITY})})[0]),
              ElementsAre(-INFINITY, INFINITY));
  EXPECT_TRUE(std::isnan(floats(call_op("Clip", {row({NAN}), number(-1), number(1)})[0])[0]));
}

TEST(Clip, MaxWinsOverMin) {
  EXPECT_THAT(floats(call_op("Clip", {row({-2, 0, 3}), number(2), number(1)})[0]),
              ElementsAre(1, 1, 1));
}

TEST(Clip, BoundsWereAttributesBeforeOpset11) {
  const Tensor x = row({-2, 0, 9});
  EXPECT_THAT(floats(call_old_op("Clip", 7, {x}, {{"min", 0.0F}, {"max", 6.0F}})),
              ElementsAre(0, 0, 6));
  EXPECT_THAT(floats(call_old_op("Clip", 10, {x}, {{"max", 6.0F}})), ElementsAre(-2, 0, 6));
  EXPECT_THAT(floats(call_old_op("Clip", 9, {x})), ElementsAre(-2, 0, 9));
}

/// Where no one says the type of the input yet: a chain of old nodes without value_info.
TEST(Clip, OldFormOfAnInputOfUnknownType) {
  Model model;
  model.set_opset("", 7);
  Graph& graph = model.graph();
  Value* const x = graph.add_initializer("x", Tensor::from<double>({2}, {-2, 9}));
  Value* const middle = graph.add_node("Neg", "", {x}, {"middle"})->output(0);
  graph.add_output(graph.add_node("Clip", "", {middle}, {"y"}, {{"min", -1.5F}})->output(0));
  passes::upgrade_opset(model);
  passes::infer_shapes(graph);
  passes::fold_constants(graph);
  EXPECT_THAT(to_double(graph.outputs().front()->initializer()), ElementsAre(2, -1.5));
}

/// As torch.clamp: both ends let the gradient through.
TEST(Clip, Gradients) {
  const auto inside =
      rule_gradients("Clip", {row({-2, -1, 0, 1, 2}), number(-1), number(1)}, row({1, 2, 3, 4, 5}));
  EXPECT_THAT(floats(inside[0]), ElementsAre(0, 2, 3, 4, 0));
  EXPECT_THAT(floats(inside[1]), ElementsAre(1, 0, 0, 0, 0));
  EXPECT_THAT(floats(inside[2]), ElementsAre(0, 0, 0, 0, 5));
  const auto crossed = rule_gradients("Clip", {row({-2, 2}), number(1), number(-1)}, row({1, 2}));
  EXPECT_THAT(floats(crossed[0]), ElementsAre(0, 0));
  EXPECT_THAT(floats(crossed[1]), ElementsAre(0, 0));
  EXPECT_THAT(floats(crossed[2]), ElementsAre(1, 2));
}

TEST(Clip, BoundsAreSingleNumbersOfTheSameType) {
  EXPECT_EQ(kind_of([] { call_op("Clip", {row({1}), row({1, 2})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { call_op("Clip", {row({1}), Tensor::scalar(1.0)}); }), ErrorKind::type);
}

}  // namespace
}  // namespace graft
