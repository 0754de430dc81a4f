#include "optim/clip.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/graph/graph.h"
#include "core/ops/builder.h"
#include "core/ops/evaluate.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

/// Clips gradients given as lists and evaluates the added nodes in order.
std::vector<std::vector<float>> clipped(const Clip& clip,
                                        const std::vector<std::vector<float>>& gradients) {
  Graph graph;
  Builder builder(graph);
  std::vector<Expr> given;
  for (const std::vector<float>& values : gradients) {
    given.push_back(builder.expr(
        builder.constant(Tensor::from({static_cast<std::int64_t>(values.size())}, values))));
  }
  const std::vector<Expr> limited = clip_gradients(clip, given);
  std::map<const Value*, Tensor> known;
  for (const Value* value : graph.initializers()) known[value] = value->initializer();
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> inputs;
    for (const Value* input : node->inputs()) {
      inputs.push_back(input == nullptr ? Tensor() : known.at(input));
    }
    known[node->output(0)] = evaluate(*node, inputs)[0];
  }
  std::vector<std::vector<float>> result;
  for (const Expr& gradient : limited) {
    const auto values = known.at(gradient.value()).values<const float>();
    result.emplace_back(values.begin(), values.end());
  }
  return result;
}

TEST(Clip, ScalesAllByTheCommonNorm) {
  // Norm sqrt(9 + 16 + 144) = 13; scale 6.5 / (13 + 1e-6).
  const auto g = clipped({.norm = 6.5F}, {{3, 4}, {12}});
  EXPECT_THAT(g[0], ElementsAre(FloatNear(1.5F, 1e-6F), FloatNear(2.0F, 1e-6F)));
  EXPECT_THAT(g[1], ElementsAre(FloatNear(6.0F, 1e-6F)));
}

TEST(Clip, LeavesASmallNormAlone) {
  const auto g = clipped({.norm = 20.0F}, {{3, 4}, {12}});
  EXPECT_THAT(g[0], ElementsAre(3, 4));
  EXPECT_THAT(g[1], ElementsAre(12));
  EXPECT_THAT(clipped({.norm = 1.0F}, {{0, 0}})[0], ElementsAre(0, 0));
}

TEST(Clip, ByValueComesFirst) {
  EXPECT_THAT(clipped({.value = 2.0F}, {{-3, 1, 5}})[0], ElementsAre(-2, 1, 2));
  // After values: (3, 4), norm 5.
  EXPECT_THAT(clipped({.norm = 2.5F, .value = 4.0F}, {{3, 100}})[0],
              ElementsAre(FloatNear(1.5F, 1e-6F), FloatNear(2.0F, 1e-6F)));
}

TEST(Clip, RefusesALimitOfZero) {
  EXPECT_THROW(clipped({.norm = 0.0F}, {{1}}), Error);
  EXPECT_THROW(clipped({.value = -1.0F}, {{1}}), Error);
  EXPECT_THROW(clipped({.norm = std::nanf("")}, {{1}}), Error);
  EXPECT_TRUE(clipped({}, {}).empty());
}

}  // namespace
}  // namespace graft
