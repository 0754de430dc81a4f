#include <gmock/gmock.h>

#include <numeric>

#include "core/ops/move/slice.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::IsEmpty;

Tensor list(std::initializer_list<std::int64_t> numbers) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}
Tensor zero_to_nine() {
  std::vector<float> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return Tensor::from({10}, numbers);
}
std::vector<float> slice(std::int64_t start, std::int64_t end, std::int64_t step) {
  return floats(
      call_op("Slice", {zero_to_nine(), list({start}), list({end}), list({0}), list({step})})[0]);
}

// The values are those of NumPy's x[start:end:step].
TEST(Slice, AsInNumPy) {
  EXPECT_THAT(slice(2, 5, 1), ElementsAre(2, 3, 4));
  EXPECT_THAT(slice(-3, 100, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(slice(0, -7, 2), ElementsAre(0, 2));
  EXPECT_THAT(slice(8, 2, -3), ElementsAre(8, 5));
  EXPECT_THAT(slice(100, -100, -4), ElementsAre(9, 5, 1));
  EXPECT_THAT(slice(2, INT64_MIN, -1), ElementsAre(2, 1, 0));
  EXPECT_THAT(slice(0, INT64_MAX, INT64_MAX), ElementsAre(0));
  EXPECT_THAT(slice(9, INT64_MIN, INT64_MIN), ElementsAre(9));
  EXPECT_THAT(slice(5, 5, 1), IsEmpty());
  EXPECT_THAT(slice(-100, -50, 1), IsEmpty());
  EXPECT_THAT(slice(-100, -100, -1), IsEmpty());
  EXPECT_THAT(slice(20, 30, 1), IsEmpty());
}

TEST(Slice, OfAnEmptyAxisIsEmpty) {
  for (const std::int64_t step : {1, -1}) {
    EXPECT_EQ(slice_range(0, 5, step, 0).count, 0);
    EXPECT_EQ(slice_range(-1, INT64_MIN, step, 0).count, 0);
  }
}

TEST(Slice, RefusesWhatDoesNotFit) {
  const auto kind = [](const std::vector<Tensor>& inputs) {
    return kind_of([&] { call_op("Slice", inputs); });
  };
  const Tensor x = zero_to_nine();
  EXPECT_EQ(kind({x, list({0}), list({1}), list({0}), list({0})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({0}), list({1}), list({1})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({0}), list({1, 2})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({0, 0}), list({1, 1}), list({0, -1})}), ErrorKind::shape);
  EXPECT_EQ(kind({x}), ErrorKind::model);
}

TEST(Slice, KeepsANamedDimThatIsTakenWhole) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 5}});
  const auto sliced = [&](std::int64_t start, std::int64_t end) {
    return *builder
                .node("Slice", "",
                      {x, builder.constant(list({start, 1})), builder.constant(list({end, 4}))}, 1)
                ->output()
                ->shape();
  };
  EXPECT_EQ(sliced(0, INT64_MAX), (SymShape{Dim("N"), 3}));
  EXPECT_EQ(sliced(0, 2), (SymShape{Dim(), 3}));
}

TEST(Slice, TakesBoundsAsAttributesBefore10) {
  using Ints = std::vector<std::int64_t>;
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y =
      call_old_op("Slice", 9, {x}, {{"starts", Ints{1}}, {"ends", Ints{1000}}, {"axes", Ints{1}}});
  EXPECT_THAT(floats(y), ElementsAre(2, 3, 5, 6));
}

TEST(SliceGrad, SetsIntoZeros) {
  using Ints = std::vector<std::int64_t>;
  const Attributes attributes{{"shape", Ints{5}}, {"starts", Ints{4}}, {"steps", Ints{-2}}};
  EXPECT_THAT(
      floats(call_internal_op("SliceGrad", {Tensor::from<float>({2}, {1, 2})}, attributes)[0]),
      ElementsAre(0, 0, 2, 0, 1));
  const Tensor too_long = Tensor::zeros(DType::f32, {4});
  EXPECT_EQ(kind_of([&] { call_internal_op("SliceGrad", {too_long}, attributes); }),
            ErrorKind::shape);
}

}  // namespace
}  // namespace graft
