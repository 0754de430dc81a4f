#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor sizes(std::initializer_list<std::int64_t> list) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(list.size())}, list);
}

TEST(Concat, AlongEitherAxis) {
  const Tensor a = Tensor::from<float>({2, 1}, {1, 2});
  const Tensor b = Tensor::from<float>({2, 2}, {3, 4, 5, 6});
  EXPECT_THAT(floats(call_op("Concat", {a, b}, {{"axis", 1}})[0]), ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_THAT(floats(call_op("Concat", {b, b}, {{"axis", -2}})[0]),
              ElementsAre(3, 4, 5, 6, 3, 4, 5, 6));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  const Tensor a = Tensor::zeros(DType::f32, {2, 1});
  const Tensor b = Tensor::zeros(DType::f32, {3, 1});
  EXPECT_EQ(kind_of([&] { call_op("Concat", {a, b}, {{"axis", 1}}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("Concat", {a, b}, {{"axis", 2}}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("Concat", {a, b}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] {
              call_op("Concat", {a, a.cast(DType::f64)}, {{"axis", 0}});
            }),
            ErrorKind::type);
}

TEST(Concat, JoinsWhatIsKnownOfTheOtherAxes) {
  Graph graph;
  Builder builder(graph);
  Value* const a = graph.add_input("a", {DType::f32, SymShape{Dim("N"), 2}});
  Value* const b = graph.add_input("b", {DType::f32, SymShape{Dim("N"), 3}});
  Value* const c = graph.add_input("c", {DType::f32, SymShape{7, Dim()}});
  EXPECT_EQ(*builder.node("Concat", "", {a, b}, 1, {{"axis", 1}})->output()->shape(),
            (SymShape{Dim("N"), 5}));
  EXPECT_EQ(*builder.node("Concat", "", {a, c}, 1, {{"axis", 1}})->output()->shape(),
            (SymShape{7, Dim()}));
}

TEST(Split, LastPartMayBeSmaller) {
  const Tensor x = Tensor::from<float>({7}, {0, 1, 2, 3, 4, 5, 6});
  const std::vector<Tensor> parts = call_op("Split", {x}, {{"num_outputs", 3}}, 3);
  EXPECT_THAT(floats(parts[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(floats(parts[2]), ElementsAre(6));
}

TEST(Split, BySizes) {
  const Tensor x = Tensor::from<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::vector<Tensor> parts = call_op("Split", {x, sizes({1, 2})}, {{"axis", 1}}, 2);
  EXPECT_THAT(floats(parts[0]), ElementsAre(0, 3));
  EXPECT_THAT(floats(parts[1]), ElementsAre(1, 2, 4, 5));
}

TEST(Split, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros(DType::f32, {5});
  const auto kind = [&](const std::vector<Tensor>& inputs, const Attributes& attributes,
                        int count) {
    return kind_of([&] { call_op("Split", inputs, attributes, count); });
  };
  EXPECT_EQ(kind({x, sizes({1, 2})}, {}, 2), ErrorKind::shape);
  EXPECT_EQ(kind({x, sizes({6, -1})}, {}, 2), ErrorKind::shape);
  EXPECT_EQ(kind({x, sizes({5})}, {}, 2), ErrorKind::shape);
  EXPECT_EQ(kind({x, sizes({INT64_MAX, INT64_MAX})}, {}, 2), ErrorKind::shape);
  EXPECT_EQ(kind({x}, {{"num_outputs", 4}}, 4), ErrorKind::shape);  // 2, 2, 2 and -1
  EXPECT_EQ(kind({x}, {{"num_outputs", 3}}, 2), ErrorKind::model);
  EXPECT_EQ(kind({x}, {}, 2), ErrorKind::shape);  // neither sizes nor num_outputs: equal parts
}

TEST(Split, TakesSizesAsAttributeBefore13) {
  const Tensor x = Tensor::from<float>({3}, {1, 2, 3});
  const Attributes attributes{{"split", std::vector<std::int64_t>{3}}};
  EXPECT_THAT(floats(call_old_op("Split", 11, {x}, attributes)), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace graft
