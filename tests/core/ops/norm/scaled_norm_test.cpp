#include <gtest/gtest.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

TEST(Lrn, RefusesMoreChannelsThanAWindowCanMeet) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, std::int64_t{1} << 62}});
  const std::int64_t size = INT64_MAX;
  graph.add_output(builder.node("LRN", "", {x}, 1, {{"size", size}})->output());
  EXPECT_EQ(kind_of([&] { passes::decompose(graph); }), ErrorKind::shape);
}

/// 400 / (1 + 1e-4 * 400^2)^0.75 = 47.78; 400^2 is beyond f16.
TEST(ScaledNorm, SquaresOfShortFloatsHaveRoom) {
  const Tensor x = Tensor::from<float>({1, 1, 2}, {400, -400}).cast(DType::f16);
  const Tensor lrn = testing::call_op("LRN", {x}, {{"size", 1}})[0];
  EXPECT_EQ(lrn.dtype(), DType::f16);
  EXPECT_NEAR(testing::floats(lrn.cast(DType::f32))[0], 47.78, 0.05);
  const Attributes last{{"axes", std::vector<std::int64_t>{2}}};
  const Tensor mvn = testing::call_op("MeanVarianceNormalization", {x}, last)[0];
  EXPECT_NEAR(testing::floats(mvn.cast(DType::f32))[1], -1, 1e-3);
}

}  // namespace
}  // namespace graft
