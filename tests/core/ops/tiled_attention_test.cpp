#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Tensor> attend(const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  const testing::OneNode one("TiledAttention", kInternalDomain, inputs, 2, std::move(attributes));
  return evaluate(*one.node, inputs);
}

std::vector<Tensor> differentiate(const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  const testing::OneNode one("TiledAttentionGrad", kInternalDomain, inputs, 3,
                             std::move(attributes));
  return evaluate(*one.node, inputs);
}

TEST(TiledAttention, OneQueryByHand) {
  // Scores 0 and log 3 after the scale: weights 1/4 and 3/4.
  const Tensor q = Tensor::from<float>({1, 1}, {2.0F});
  const Tensor k = Tensor::from<float>({2, 1}, {0.0F, std::log(3.0F)});
  const Tensor v = Tensor::from<float>({2, 2}, {4.0F, 0.0F, 8.0F, -4.0F});
  const std::vector<Tensor> y = attend({q, k, v}, {{"scale", 0.5F}});
  EXPECT_THAT(floats(y[0]), ElementsAre(FloatEq(7.0F), FloatEq(-3.0F)));
  EXPECT_THAT(floats(y[1]), ElementsAre(FloatEq(std::log(4.0F))));
  // dv = p dy; ds = p (dy v - dy y) = 1/4 (4 - 7), 3/4 (8 - 7); dq = scale ds k, dk = scale ds q.
  const Tensor dy = Tensor::from<float>({1, 2}, {1.0F, 0.0F});
  const std::vector<Tensor> d = differentiate({q, k, v, y[0], y[1], dy}, {{"scale", 0.5F}});
  EXPECT_THAT(floats(d[0]), ElementsAre(FloatNear(0.375F * std::log(3.0F), 1e-6F)));
  EXPECT_THAT(floats(d[1]), ElementsAre(FloatNear(-0.75F, 1e-6F), FloatNear(0.75F, 1e-6F)));
  EXPECT_THAT(floats(d[2]),
              ElementsAre(FloatNear(0.25F, 1e-6F), 0.0F, FloatNear(0.75F, 1e-6F), 0.0F));
}

TEST(TiledAttention, TheSequenceMayStandFirst) {
  // [query, problem, depth]: two problems of one query; the weights of v are 1/2 and 1/2.
  const Tensor q = Tensor::zeros(DType::f32, {1, 2, 1});
  const Tensor v = Tensor::from<float>({2, 2, 1}, {1.0F, 10.0F, 3.0F, 30.0F});
  const std::vector<Tensor> y =
      attend({q, Tensor::zeros(DType::f32, {2, 2, 1}), v}, {{"sequence_axis", 0}});
  EXPECT_THAT(floats(y[0]), ElementsAre(FloatEq(2.0F), FloatEq(20.0F)));
}

/// One query, and a score for each key by its bias.
std::vector<float> with_scores(const std::vector<float>& scores) {
  const auto keys = static_cast<std::int64_t>(scores.size());
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < keys; ++i) numbers.push_back(static_cast<float>(i));
  return floats(
      attend({Tensor::zeros(DType::f32, {1, 1}), Tensor::zeros(DType::f32, {keys, 1}),
              Tensor::from<float>({keys, 1}, numbers), Tensor::from<float>({1, keys}, scores)})[0]);
}

TEST(TiledAttention, MinusInfinityHidesKeys) {
  EXPECT_THAT(with_scores({-kInfinity, 5.0F, -kInfinity, 5.0F}), ElementsAre(FloatEq(2.0F)));
  EXPECT_TRUE(std::isnan(with_scores({-kInfinity, -kInfinity}).front()));  // as Softmax
}

TEST(TiledAttention, LargestScoresMayComeLate) {
  std::vector<float> scores(300, -kInfinity);  // the first tile is hidden as a whole
  scores[200] = 1000.0F;
  EXPECT_THAT(with_scores(scores), ElementsAre(FloatEq(200.0F)));
  scores[290] = 1000.0F + std::log(2.0F);
  EXPECT_THAT(with_scores(scores), ElementsAre(FloatNear(260.0F, 1e-2F)));
  scores[3] = -1000.0F;
  EXPECT_THAT(with_scores(scores), ElementsAre(FloatNear(260.0F, 1e-2F)));
}

TEST(TiledAttention, WithoutKeysTheSumIsZero) {
  const std::vector<Tensor> y =
      attend({Tensor::zeros(DType::f32, {2, 3}), Tensor::zeros(DType::f32, {0, 3}),
              Tensor::zeros(DType::f32, {0, 4})});
  EXPECT_THAT(floats(y[0]), Each(0.0F));
  EXPECT_THAT(floats(y[1]), Each(-kInfinity));
}

}  // namespace
}  // namespace graft
