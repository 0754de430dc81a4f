#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::IsEmpty;

template <class T>
std::vector<T> range(T start, T limit, T delta) {
  const Tensor y =
      call_op("Range", {Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)})[0];
  const auto values = y.values<const T>();
  return {values.begin(), values.end()};
}

TEST(Range, StopsBeforeTheLimit) {
  EXPECT_THAT(range<std::int64_t>(3, 9, 3), ElementsAre(3, 6));
  EXPECT_THAT(range<std::int64_t>(10, 4, -2), ElementsAre(10, 8, 6));
  EXPECT_THAT(range<std::int64_t>(0, 5, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(range<std::int64_t>(0, -5, 2), IsEmpty());
  EXPECT_THAT(range<std::int64_t>(INT64_MAX - 1, INT64_MAX, 5), ElementsAre(INT64_MAX - 1));
  EXPECT_THAT(range<float>(0, 1, 0.4F), ElementsAre(0, 0.4F, 0.8F));
  EXPECT_EQ(kind_of([] { range<std::int64_t>(0, 5, 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { range<float>(0, 5, 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { range<std::int64_t>(INT64_MIN, INT64_MAX, 1); }), ErrorKind::shape);
}

TEST(Range, HalvesAreComputedAsFloats) {
  const auto half = [](float value) { return Tensor::scalar(value).cast(DType::f16); };
  const Tensor y = call_op("Range", {half(1), half(3), half(0.75F)})[0];
  EXPECT_THAT(to_double(y), ElementsAre(1, 1.75, 2.5));
}

TEST(Shape, PartOfTheDims) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3, 4});
  const auto dims = [&](const Attributes& attributes) {
    return to_int64(call_op("Shape", {x}, attributes)[0]);
  };
  EXPECT_THAT(dims({}), ElementsAre(2, 3, 4));
  EXPECT_THAT(dims({{"start", -1}}), ElementsAre(4));
  EXPECT_THAT(dims({{"start", 1}, {"end", -1}}), ElementsAre(3));
  EXPECT_THAT(dims({{"start", 2}, {"end", 1}}), IsEmpty());
  EXPECT_THAT(to_int64(call_op("Size", {x})[0]), ElementsAre(24));
}

TEST(ConstantOfShape, FillsWithTheValue) {
  const Tensor shape = Tensor::from<std::int64_t>({1}, {2});
  EXPECT_THAT(floats(call_op("ConstantOfShape", {shape})[0]), ElementsAre(0, 0));
  const Tensor y =
      call_op("ConstantOfShape", {shape}, {{"value", Tensor::from<std::int64_t>({1}, {7})}})[0];
  EXPECT_THAT(to_int64(y), ElementsAre(7, 7));
  const Attributes two{{"value", Tensor::zeros(DType::f32, {2})}};
  EXPECT_EQ(kind_of([&] { call_op("ConstantOfShape", {shape}, two); }), ErrorKind::model);
}

TEST(Constant, BecomesAnInitializerOfItsName) {
  Model model;
  model.set_opset("", 13);
  Graph& graph = model.graph();
  graph.add_output(graph.add_node("Constant", "", {}, {"c"}, {{"value_int", 5}})->output(0));
  passes::upgrade_opset(model);
  ASSERT_EQ(graph.outputs().front()->name(), "c");
  EXPECT_THAT(to_int64(graph.outputs().front()->initializer()), ElementsAre(5));
  EXPECT_EQ(graph.node_count(), 0U);
}

TEST(Constant, EveryForm) {
  const auto value = [](const Attributes& attributes) {
    return call_old_op("Constant", 13, {}, attributes);
  };
  EXPECT_THAT(floats(value({{"value_floats", std::vector<float>{1, 2}}})), ElementsAre(1, 2));
  EXPECT_EQ(value({{"value_float", 1.5F}}).shape(), Shape({}));
  EXPECT_THAT(to_int64(value({{"value_ints", std::vector<std::int64_t>{3}}})), ElementsAre(3));
  EXPECT_THAT(value({{"value_string", "a"}}).strings(), ElementsAre("a"));
  EXPECT_THAT(value({{"value_strings", std::vector<std::string>{"a", "b"}}}).strings(),
              ElementsAre("a", "b"));
  EXPECT_EQ(kind_of([&] { value({}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] { value({{"value_int", 1}, {"value_float", 1.0F}}); }), ErrorKind::model);
}

TEST(EyeLike, OnesOnADiagonal) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3});
  EXPECT_THAT(floats(call_op("EyeLike", {x}, {{"k", 1}})[0]), ElementsAre(0, 1, 0, 0, 0, 1));
  EXPECT_THAT(floats(call_op("EyeLike", {x}, {{"k", -1}})[0]), ElementsAre(0, 0, 0, 1, 0, 0));
  EXPECT_THAT(floats(call_op("EyeLike", {x}, {{"k", AttributeValue(INT64_MIN)}})[0]),
              ElementsAre(0, 0, 0, 0, 0, 0));
}

/// What exporters write for x.reshape(x.shape[0], -1): all of it is known before the run.
TEST(Shape, ChainsFoldToConstants) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{4, 2, 3}});
  const auto one = [&](std::string_view op, const std::vector<Value*>& inputs,
                       const Attributes& attributes = {}) {
    return builder.node(op, "", inputs, 1, attributes)->output();
  };
  Value* const dims = one("Shape", {x});
  Value* const first = one("Gather", {dims, builder.constant(Tensor::scalar<std::int64_t>(0))});
  Value* const axes = builder.constant(Tensor::from<std::int64_t>({1}, {0}));
  Value* const rest = builder.constant(Tensor::from<std::int64_t>({1}, {-1}));
  Value* const target = one("Concat", {one("Unsqueeze", {first, axes}), rest}, {{"axis", 0}});
  Value* const y = one("Reshape", {x, target});
  graph.add_output(y);
  EXPECT_EQ(*y->shape(), (SymShape{Dim(), Dim()}));
  passes::settle(graph);
  EXPECT_EQ(*y->shape(), (SymShape{4, 6}));
  EXPECT_EQ(graph.node_count(), 1U);
}

}  // namespace
}  // namespace graft
