#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor matrix() {
  return Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
}
Tensor ids(const Shape& shape, std::initializer_list<std::int64_t> numbers) {
  return Tensor::from<std::int64_t>(shape, numbers);
}

TEST(Gather, RowsAndColumns) {
  const Tensor rows = call_op("Gather", {matrix(), ids({2, 1}, {1, -2})})[0];
  EXPECT_EQ(rows.shape(), Shape({2, 1, 3}));
  EXPECT_THAT(floats(rows), ElementsAre(4, 5, 6, 1, 2, 3));
  const Tensor column = call_op("Gather", {matrix(), ids({}, {2})}, {{"axis", 1}})[0];
  EXPECT_EQ(column.shape(), Shape({2}));
  EXPECT_THAT(floats(column), ElementsAre(3, 6));
}

TEST(Gather, RefusesKnownIndicesOutOfRange) {
  EXPECT_EQ(kind_of([] { call_op("Gather", {matrix(), ids({1}, {2})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { call_op("Gather", {matrix(), ids({1}, {-3})}); }), ErrorKind::shape);
  const Tensor none = Tensor::zeros(DType::f32, {0, 3});
  EXPECT_EQ(kind_of([&] { call_op("Gather", {none, ids({1}, {0})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { call_op("Gather", {matrix(), matrix()}); }), ErrorKind::type);
}

/// Indices that come with the run cannot be refused: they stay within memory.
TEST(Gather, ClampsIndicesOfTheRun) {
  Graph graph;
  Builder builder(graph);
  Value* const data = graph.add_input("data", {DType::f32, SymShape{2, 3}});
  Value* const indices = graph.add_input("indices", {DType::i64, SymShape{2}});
  const Node* const node = builder.node("Gather", "", {data, indices}, 1);
  EXPECT_THAT(floats(evaluate(*node, {matrix(), ids({2}, {99, -99})})[0]),
              ElementsAre(4, 5, 6, 1, 2, 3));
}

TEST(GatherGrad, AddsUpRepeatedRows) {
  const Tensor dy = Tensor::from<float>({3, 2}, {1, 2, 10, 20, 100, 200});
  const Tensor dx =
      call_internal_op("GatherGrad", {dy, ids({3}, {2, 0, -1})}, {{"axis", 0}, {"size", 3}})[0];
  EXPECT_THAT(floats(dx), ElementsAre(10, 20, 0, 0, 101, 202));
}

TEST(GatherElements, TakesOneElementEach) {
  const Tensor y =
      call_op("GatherElements", {matrix(), ids({2, 2}, {0, 2, -1, 0})}, {{"axis", 1}})[0];
  EXPECT_THAT(floats(y), ElementsAre(1, 3, 6, 4));
}

TEST(ScatterElements, OverwritesOrReduces) {
  const Tensor updates = Tensor::from<float>({1, 2}, {10, 20});
  const auto scatter = [&](const char* reduction, std::initializer_list<std::int64_t> at) {
    return floats(call_op("ScatterElements", {matrix(), ids({1, 2}, at), updates},
                          {{"axis", 1}, {"reduction", reduction}})[0]);
  };
  EXPECT_THAT(scatter("none", {0, 2}), ElementsAre(10, 2, 20, 4, 5, 6));
  EXPECT_THAT(scatter("add", {1, 1}), ElementsAre(1, 32, 3, 4, 5, 6));
  EXPECT_THAT(scatter("mul", {1, 1}), ElementsAre(1, 400, 3, 4, 5, 6));
  EXPECT_THAT(scatter("max", {1, 1}), ElementsAre(1, 20, 3, 4, 5, 6));
  EXPECT_THAT(scatter("min", {1, 1}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(kind_of([&] { scatter("sum", {0, 1}); }), ErrorKind::model);
}

TEST(ScatterElements, WasOnceScatter) {
  const Tensor y =
      call_old_op("Scatter", 9, {matrix(), ids({1, 1}, {1}), Tensor::from<float>({1, 1}, {10})});
  EXPECT_THAT(floats(y), ElementsAre(1, 2, 3, 10, 5, 6));
}

TEST(GatherNd, ElementsSlicesAndBatches) {
  EXPECT_THAT(floats(call_op("GatherND", {matrix(), ids({2, 2}, {0, 0, 1, -1})})[0]),
              ElementsAre(1, 6));
  EXPECT_THAT(floats(call_op("GatherND", {matrix(), ids({1, 1}, {1})})[0]), ElementsAre(4, 5, 6));
  EXPECT_THAT(floats(call_op("GatherND", {matrix(), ids({2, 1}, {2, 0})}, {{"batch_dims", 1}})[0]),
              ElementsAre(3, 4));
}

TEST(ScatterNd, InOrderOfTheTuples) {
  const Tensor data = Tensor::from<float>({4}, {1, 2, 3, 4});
  const Tensor updates = Tensor::from<float>({3}, {10, 20, 30});
  const Tensor at = ids({3, 1}, {3, 0, 3});
  EXPECT_THAT(floats(call_op("ScatterND", {data, at, updates})[0]), ElementsAre(20, 2, 3, 30));
  EXPECT_THAT(floats(call_op("ScatterND", {data, at, updates}, {{"reduction", "add"}})[0]),
              ElementsAre(21, 2, 3, 44));
}

TEST(GatherNd, RefusesWhatDoesNotFit) {
  const auto kind = [](const Tensor& indices, int batch_dims) {
    return kind_of([&] { call_op("GatherND", {matrix(), indices}, {{"batch_dims", batch_dims}}); });
  };
  EXPECT_EQ(kind(ids({1, 3}, {0, 0, 0}), 0), ErrorKind::shape);
  EXPECT_EQ(kind(ids({1, 1}, {2}), 0), ErrorKind::shape);
  EXPECT_EQ(kind(ids({1, 1}, {0}), 2), ErrorKind::shape);
  EXPECT_EQ(kind(ids({1, 1}, {0}), -1), ErrorKind::shape);
  EXPECT_EQ(kind(ids({}, {0}), 0), ErrorKind::shape);
}

TEST(ScatterElements, GradientsOfReductions) {
  const Tensor data = Tensor::from<float>({3}, {2, 5, 0});
  const Tensor indices = Tensor::from<std::int64_t>({4}, {0, 1, 1, 2});
  const Tensor dy = Tensor::from<float>({3}, {1, 6, 10});
  const auto gradients = [&](const char* reduction, std::initializer_list<float> updates) {
    return testing::rule_gradients("ScatterElements",
                                   {data, indices, Tensor::from<float>({4}, updates)}, dy,
                                   {{"reduction", reduction}});
  };
  const auto greatest = gradients("max", {1, 5, 5, 4});
  EXPECT_THAT(floats(greatest[0]), ElementsAre(1, 2, 0));
  EXPECT_THAT(floats(greatest[2]), ElementsAre(0, 2, 2, 10));
  const auto product = gradients("mul", {0, 3, 0, 4});
  EXPECT_THAT(floats(product[0]), ElementsAre(0, 0, 40));
  EXPECT_THAT(floats(product[2]), ElementsAre(2, 0, 90, 0));
  EXPECT_THAT(floats(gradients("mul", {0, 0, 0, 4})[2]), ElementsAre(2, 0, 0, 0));
}

/// mask[1] = true, as PyTorch writes it.
TEST(Scatter, TruthValues) {
  const Tensor none = Tensor::full(DType::boolean, {2, 2}, 0);
  const Tensor update = Tensor::from<bool>({1, 2}, {true, false});
  const auto truths = [](const Tensor& tensor) { return to_int64(tensor.cast(DType::i64)); };
  EXPECT_THAT(truths(call_op("ScatterND", {none, ids({1, 1}, {1}), update})[0]),
              ElementsAre(0, 0, 1, 0));
  const std::vector<Tensor> elements{none, ids({1, 2}, {1, 1}), update};
  EXPECT_THAT(truths(call_op("ScatterElements", elements)[0]), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(truths(call_op("ScatterElements", elements, {{"reduction", "max"}})[0]),
              ElementsAre(0, 0, 1, 0));
}

}  // namespace
}  // namespace graft
