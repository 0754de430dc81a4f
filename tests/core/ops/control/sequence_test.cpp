#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/ops/dynamic.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;

Datum number(float value) {
  return Tensor::scalar(value);
}

Datum at(std::int64_t position) {
  return Tensor::scalar(position);
}

Datum numbers(const std::vector<float>& values) {
  Sequence sequence{{}, DType::f32};
  for (const float value : values) sequence.items.push_back(number(value));
  return sequence;
}

std::vector<float> values_of(const Datum& sequence) {
  std::vector<float> values;
  for (const Datum& item : sequence.sequence().items) {
    values.push_back(item.tensor().values<const float>()[0]);
  }
  return values;
}

Datum call(std::string_view op, const std::vector<Datum>& inputs, Attributes attributes = {}) {
  Graph graph;
  const Node* const node = graph.add_node(op, "", {}, {"y"}, std::move(attributes));
  return call_dynamic(*node, inputs).front();
}

TEST(Sequence, InsertsBeforeAPlace) {
  const Datum two = numbers({1, 2});
  EXPECT_THAT(values_of(call("SequenceInsert", {two, number(9)})), ElementsAre(1, 2, 9));
  EXPECT_THAT(values_of(call("SequenceInsert", {two, number(9), at(0)})), ElementsAre(9, 1, 2));
  EXPECT_THAT(values_of(call("SequenceInsert", {two, number(9), at(2)})), ElementsAre(1, 2, 9));
  EXPECT_THAT(values_of(call("SequenceInsert", {two, number(9), at(-1)})), ElementsAre(1, 9, 2));
  EXPECT_THAT(values_of(two), ElementsAre(1, 2)) << "the input stays";
  EXPECT_EQ(kind_of([&] { call("SequenceInsert", {two, number(9), at(3)}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { call("SequenceInsert", {two, at(1)}); }), ErrorKind::type);
}

TEST(Sequence, ErasesAndFinds) {
  const Datum three = numbers({1, 2, 3});
  EXPECT_THAT(values_of(call("SequenceErase", {three})), ElementsAre(1, 2));
  EXPECT_THAT(values_of(call("SequenceErase", {three, at(-3)})), ElementsAre(2, 3));
  EXPECT_EQ(call("SequenceAt", {three, at(-1)}).tensor().values<const float>()[0], 3);
  EXPECT_EQ(to_int64(call("SequenceLength", {three}).tensor()).front(), 3);
  EXPECT_EQ(kind_of([&] { call("SequenceAt", {three, at(3)}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { call("SequenceErase", {numbers({})}); }), ErrorKind::argument);
}

TEST(Sequence, SplitsATensor) {
  const Tensor x = Tensor::from<float>({5}, {1, 2, 3, 4, 5});
  const auto shapes = [&](const std::vector<Datum>& inputs, Attributes attributes = {}) {
    std::vector<Shape> result;
    const Datum split = call("SplitToSequence", inputs, std::move(attributes));
    for (const Datum& item : split.sequence().items) result.push_back(item.tensor().shape());
    return result;
  };
  EXPECT_THAT(shapes({x, at(2)}), ElementsAre(Shape{2}, Shape{2}, Shape{1}));
  EXPECT_THAT(shapes({x, Tensor::from<std::int64_t>({2}, {4, 1})}),
              ElementsAre(Shape{4}, Shape{1}));
  EXPECT_EQ(shapes({x}, {{"keepdims", 0}}), std::vector<Shape>(5, Shape{}));
  EXPECT_EQ(kind_of([&] { call("SplitToSequence", {x, at(0)}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] {
              call("SplitToSequence", {x, Tensor::from<std::int64_t>({2}, {9, -4})});
            }),
            ErrorKind::shape);
}

TEST(Sequence, JoinsItems) {
  const Datum both = Sequence{{Tensor::from<float>({2}, {1, 2}), Tensor::from<float>({2}, {3, 4})}};
  const Tensor flat = call("ConcatFromSequence", {both}, {{"axis", 0}}).tensor();
  EXPECT_THAT(flat.values<const float>(), ElementsAre(1, 2, 3, 4));
  const Tensor last = call("ConcatFromSequence", {both}, {{"axis", -1}, {"new_axis", 1}}).tensor();
  EXPECT_EQ(last.shape(), (Shape{2, 2}));
  EXPECT_THAT(last.values<const float>(), ElementsAre(1, 3, 2, 4));
}

TEST(Sequence, JoinsManyItemsWithoutElements) {
  const std::int64_t many = std::int64_t{1} << 62;
  const Tensor nothing = Tensor::zeros(DType::f32, {many, 0});
  const Datum both = Sequence{{nothing, nothing}};
  const auto join = [&](std::int64_t axis) {
    return call("ConcatFromSequence", {both}, {{"axis", axis}}).tensor().shape();
  };
  EXPECT_EQ(join(1), (Shape{many, 0}));
  EXPECT_EQ(error_of([&] { join(0); }).kind(), ErrorKind::shape);
}

TEST(Optional, HasAnElementOrNot) {
  const auto has = [](const std::vector<Datum>& inputs) {
    return call("OptionalHasElement", inputs).tensor().values<const bool>()[0];
  };
  EXPECT_TRUE(has({number(1)}));
  EXPECT_TRUE(has({numbers({})}));
  EXPECT_FALSE(has({Datum()}));
  EXPECT_FALSE(has({}));
  EXPECT_EQ(kind_of([] { call("OptionalGetElement", {Datum()}); }), ErrorKind::argument);
}

}  // namespace
}  // namespace graft
