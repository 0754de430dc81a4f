#include "core/passes/draw_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/print.h"
#include "core/runtime/plan.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::FloatEq;

Expr dropout(const Expr& x, float ratio, std::int64_t op_id, std::int64_t seed = 5) {
  return call_internal("DropoutTraining", {x},
                       {{"ratio", ratio}, {"seed", seed}, {"op_id", op_id}});
}

std::unique_ptr<Graph> with_masks(test::SmallNet& net) {
  EXPECT_TRUE(passes::draw_masks(net.graph));
  EXPECT_TRUE(std::ranges::all_of(net.graph.nodes(), [](const auto& node) {
    return node->domain().empty();
  })) << print(net.graph);
  return net.graph.clone();
}

std::vector<float> values(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

TEST(DrawMasks, TheGradientHasTheMaskOfTheForwardPart) {
  constexpr std::int64_t kCount = 10'000;
  test::SmallNet net;
  const Expr x = net.input("x", {kCount});
  const Expr dy = net.input("dy", {100, kCount / 100});
  net.graph.add_output(dropout(x, 0.25F, 0).value());
  net.graph.add_output(dropout(dy, 0.25F, 0).value());
  net.graph.add_output(dropout(x, 0.25F, 1).value());
  Plan plan(with_masks(net), {});
  plan.run(std::vector{Tensor::full(DType::f32, {kCount}, 3.0),
                       Tensor::full(DType::f32, {100, kCount / 100}, 3.0)});
  const std::vector<float> y = values(plan.output(0));
  EXPECT_THAT(y, Each(AnyOf(FloatEq(0.0F), FloatEq(4.0F))));
  EXPECT_EQ(y, values(plan.output(1)));
  EXPECT_NE(y, values(plan.output(2))) << "another Dropout";
  EXPECT_NEAR(std::ranges::count(y, 0.0F), 0.25 * kCount, 200);  // 4.6 standard deviations
}

TEST(DrawMasks, TheEndsOfTheRatio) {
  test::SmallNet net;
  const Expr x = net.input("x", {100}, DType::f64);
  net.graph.add_output(dropout(x, 0.0F, 0).value());
  net.graph.add_output(dropout(x, 1.0F, 1).value());
  Plan plan(with_masks(net), {});
  plan.run(std::vector{Tensor::full(DType::f64, {100}, 3.0)});
  EXPECT_THAT(to_double(plan.output(0)), Each(3.0));
  EXPECT_THAT(to_double(plan.output(1)), Each(0.0));
}

TEST(DrawMasks, TheLargestSeedGoesRound) {
  test::SmallNet net;
  net.graph.add_output(dropout(net.input("x", {3}), 0.5F, 1, INT64_MAX).value());
  const auto graph = with_masks(net);
  EXPECT_EQ(graph->nodes().front()->attributes.get_float("seed", -1.0F), 0.0F);
}

TEST(DrawMasks, NothingIsToDoWithoutDropout) {
  test::SmallNet net;
  net.graph.add_output(exp(net.input("x", {2})).value());
  EXPECT_FALSE(passes::draw_masks(net.graph));
}

}  // namespace
}  // namespace graft
