#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;
using ::testing::Pointwise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Tensor> attend(const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  const testing::OneNode one("TiledAttention", kInternalDomain, inputs, 2, std::move(attributes));
  return evaluate(*one.node, inputs);
}

/// What the gradient takes in place of y.
Tensor share_of(const Tensor& y, const Tensor& dy) {
  return testing::call_internal_op("RowDot", {y, dy})[0];
}

std::vector<Tensor> differentiate(const std::vector<Tensor>& inputs, Attributes attributes = {},
                                  int outputs = 3) {
  const testing::OneNode one("TiledAttentionGrad", kInternalDomain, inputs, outputs,
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
  const std::vector<Tensor> d =
      differentiate({q, k, v, share_of(y[0], dy), y[1], dy}, {{"scale", 0.5F}});
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

TEST(TiledAttention, OneOperandMayHoldAllThree) {
  // [sequence, part, depth]: two queries, keys and values of depth 1.
  const Tensor stack = Tensor::from<float>({2, 3, 1}, {1.0F, 0.5F, 4.0F, -2.0F, 0.25F, 8.0F});
  const auto part = [&](int i) {
    const std::vector<float> all = floats(stack);
    const auto at = static_cast<std::size_t>(i);
    return Tensor::from<float>({2, 1}, {all[at], all[at + 3]});
  };
  const Attributes attributes{{"sequence_axis", 0}, {"stack_axis", 1}};
  const std::vector<Tensor> wanted = attend({part(0), part(1), part(2)});
  const std::vector<Tensor> found = attend({stack}, attributes);
  EXPECT_EQ(floats(found[0]), floats(wanted[0]));
  EXPECT_EQ(floats(found[1]), floats(wanted[1]));
  const Tensor dy = Tensor::from<float>({2, 1}, {1.0F, -3.0F});
  const Tensor share = share_of(wanted[0], dy);
  const std::vector<Tensor> d = differentiate({part(0), part(1), part(2), share, wanted[1], dy});
  const std::vector<float> together =
      floats(differentiate({stack, Tensor(), Tensor(), share, found[1], dy}, attributes, 1)[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(floats(d[i]), ElementsAre(together[i], together[i + 3])) << i;
  }
}

TEST(TiledAttention, AStackHoldsThreeBetweenTheSequenceAndTheDepth) {
  const auto kind = [](const Shape& shape, int axis) {
    return kind_of([&] {
      attend({Tensor::zeros(DType::f32, shape)}, {{"sequence_axis", 0}, {"stack_axis", axis}});
    });
  };
  EXPECT_EQ(kind({2, 4, 1}, 1), ErrorKind::shape);
  EXPECT_EQ(kind({3, 2, 1}, 0), ErrorKind::shape);
  EXPECT_EQ(kind({2, 1, 3}, 2), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, 1), ErrorKind::shape);
  const Tensor x = Tensor::zeros(DType::f32, {2, 3, 1});
  EXPECT_EQ(kind_of([&] { attend({x}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] {
              attend({x, x, x}, {{"sequence_axis", 0}, {"stack_axis", 1}});
            }),
            ErrorKind::model);
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

/// Numbers between -1 and 1 that bf16 holds, the same for each seed.
Tensor rounded_numbers(const Shape& shape, std::uint64_t seed) {
  const Philox random(seed, 0);
  std::vector<float> numbers(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(2.0 * random.uniform_double(i) - 1.0);
  }
  return Tensor::from<float>(shape, numbers).cast(DType::bf16);
}

/// Several tiles of queries and of keys, the last ones not whole.
struct ShortOperands {
  Tensor q = rounded_numbers({2, 150, 40}, 1);
  Tensor k = rounded_numbers({2, 210, 40}, 2);
  Tensor v = rounded_numbers({2, 210, 24}, 3);
  Tensor dy = rounded_numbers({2, 150, 24}, 4);
};

std::vector<float> widened_floats(const Tensor& tensor) {
  return floats(tensor.cast(DType::f32));
}

TEST(TiledAttention, Bf16KeepsScoresInF32) {
  const ShortOperands o;
  const std::vector<Tensor> found = attend({o.q, o.k, o.v});
  const std::vector<Tensor> wanted =
      attend({o.q.cast(DType::f32), o.k.cast(DType::f32), o.v.cast(DType::f32)});
  EXPECT_EQ(found[0].dtype(), DType::bf16);
  ASSERT_EQ(found[1].dtype(), DType::f32);
  EXPECT_THAT(floats(found[1]), Pointwise(FloatNear(2e-5F), floats(wanted[1])));
  EXPECT_THAT(widened_floats(found[0]), Pointwise(FloatNear(0x1p-8F), floats(wanted[0])));
  const Tensor share = share_of(found[0], o.dy);
  EXPECT_EQ(share.dtype(), DType::f32);
  const std::vector<Tensor> d = differentiate({o.q, o.k, o.v, share, found[1], o.dy});
  const std::vector<Tensor> exact =
      differentiate({o.q.cast(DType::f32), o.k.cast(DType::f32), o.v.cast(DType::f32), share,
                     found[1], o.dy.cast(DType::f32)});
  for (std::size_t i = 0; i < d.size(); ++i) {
    EXPECT_EQ(d[i].dtype(), DType::bf16);
    EXPECT_THAT(widened_floats(d[i]), Pointwise(FloatNear(1e-2F), floats(exact[i]))) << i;
  }
}

TEST(TiledAttention, Bf16HasABiasOfF32) {
  const ShortOperands o;
  const Tensor bias = rounded_numbers({150, 210}, 5);
  const Tensor wide = bias.cast(DType::f32);
  const std::vector<Tensor> wanted =
      attend({o.q.cast(DType::f32), o.k.cast(DType::f32), o.v.cast(DType::f32), wide});
  EXPECT_THAT(widened_floats(attend({o.q, o.k, o.v, wide})[0]),
              Pointwise(FloatNear(0x1p-8F), floats(wanted[0])));
  EXPECT_EQ(kind_of([&] { attend({o.q, o.k, o.v, bias}); }), ErrorKind::type);
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
