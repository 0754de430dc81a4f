#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/decomposed_op.h"

namespace graft {
namespace {

using testing::call_decomposed;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using testing::floats;

// Queries and keys of zeros weigh all keys that they see alike.
Tensor zeros(std::int64_t length) {
  return Tensor::zeros(DType::f32, {1, 1, length, 1});
}
Tensor values() {
  return Tensor::from<float>({1, 1, 3, 1}, {3, 6, 12});
}

std::vector<float> attend(std::int64_t queries, Attributes attributes, const Tensor& mask = {}) {
  return floats(call_decomposed("Attention", {zeros(queries), zeros(3), values(), mask},
                                std::move(attributes))[0]);
}

TEST(Attention, AveragesWhatIsSeen) {
  EXPECT_THAT(attend(1, {}), ElementsAre(FloatEq(7)));
  EXPECT_THAT(attend(3, {{"is_causal", 1}}), ElementsAre(3, 4.5F, FloatEq(7)));
  EXPECT_THAT(attend(3, {{"left_window_size", 0}}), ElementsAre(FloatEq(7), 9, 12));
  EXPECT_THAT(attend(3, {{"left_window_size", 1}, {"is_causal", 1}}), ElementsAre(3, 4.5F, 9));
}

TEST(Attention, AQueryThatSeesNothingGivesZero) {
  const Tensor mask = Tensor::from<float>({2, 3}, {0, 1, 0, 0, 0, 0}).cast(DType::boolean);
  EXPECT_THAT(attend(2, {}, mask), ElementsAre(6, 0));
}

TEST(Attention, AShortMaskHidesTheRest) {
  EXPECT_THAT(attend(1, {}, Tensor::from<float>({2}, {0, 0})), ElementsAre(4.5F));
}

TEST(Attention, CausalAfterAPastCountsFromItsEnd) {
  const Tensor past = Tensor::zeros(DType::f32, {1, 1, 1, 1});
  const std::vector<Tensor> result = call_decomposed(
      "Attention", {zeros(3), zeros(3), values(), {}, past, past}, {{"is_causal", 1}}, 3);
  // The values are 0, 3, 6, 12; the first query stands at position 1.
  EXPECT_THAT(floats(result[0]), ElementsAre(1.5F, 3, 5.25F));
  EXPECT_THAT(floats(result[2]), ElementsAre(0, 3, 6, 12));
}

TEST(Attention, ScaleDefaultsToTheRootOfTheHeadSize) {
  const Tensor q = Tensor::from<float>({1, 1, 1, 4}, {2, 2, 2, 2});
  const Tensor scores =
      call_decomposed("Attention", {q, q, q}, {{"softcap", AttributeValue(0.0F)}}, 4)[3];
  EXPECT_THAT(floats(scores), ElementsAre(8));  // 16 / 2
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const auto kind = [](const Tensor& q, const Tensor& k, Attributes attributes) {
    return kind_of([&] { call_decomposed("Attention", {q, k, k}, attributes); });
  };
  EXPECT_EQ(kind(zeros(2), Tensor::zeros(DType::f32, {1, 1, 2, 3}), {}), ErrorKind::shape);
  const Tensor flat = Tensor::zeros(DType::f32, {1, 2, 6});
  EXPECT_EQ(kind(flat, flat, {}), ErrorKind::model);
  EXPECT_EQ(kind(flat, flat, {{"q_num_heads", 4}, {"kv_num_heads", 4}}), ErrorKind::shape);
  EXPECT_EQ(kind(zeros(2), zeros(2), {{"left_window_size", -2}}), ErrorKind::model);
}

TEST(TensorScatter, LongTablesOfPlacesAreRefused) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, std::int64_t{1} << 40, 1}});
  graph.add_output(builder.node("TensorScatter", "", {x, x}, 1)->output());
  EXPECT_EQ(kind_of([&] { passes::decompose_where_needed(graph, cpu()); }), ErrorKind::unsupported);
}

}  // namespace
}  // namespace graft
