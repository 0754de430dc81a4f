#include <gmock/gmock.h>

#include <cmath>

#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using testing::OneNode;

Attributes shaped(std::vector<std::int64_t> shape, Attributes attributes = {}) {
  attributes.set({"shape", AttributeValue(std::move(shape))});
  return attributes;
}

/// Run `step` of a plan.
std::vector<float> at_step(std::string_view op, const Attributes& attributes, std::uint64_t step) {
  const OneNode one(op, "", {}, 1, attributes);
  return floats(evaluate(*one.node, {}, {.step = step})[0]);
}

/// numpy.random.RandomState(3).rand(), .randn().
TEST(Random, ASeedGivesNumPysNumbers) {
  const auto near = [](double value) { return FloatNear(static_cast<float>(value), 1e-6F); };
  EXPECT_THAT(at_step("RandomUniform", shaped({2}, {{"seed", 3.0F}}), 0),
              ElementsAre(near(0.5507979), near(0.70814782)));
  EXPECT_THAT(at_step("RandomNormal", shaped({3}, {{"seed", 3.0F}}), 0),
              ElementsAre(near(1.78862847), near(0.43650985), near(0.09649747)));
  EXPECT_THAT(
      at_step("RandomUniform", shaped({1}, {{"seed", 3.0F}, {"low", 2.0F}, {"high", 4.0F}}), 0),
      ElementsAre(near(2 + 2 * 0.5507979)));
}

/// The second run is that of RandomState(4).
TEST(Random, EachRunHasItsNumbers) {
  EXPECT_THAT(at_step("RandomUniform", shaped({1}, {{"seed", 3.0F}}), 1),
              ElementsAre(FloatNear(0.96702984F, 1e-6F)));
  const Attributes without = shaped({3});
  EXPECT_EQ(at_step("RandomNormal", without, 2), at_step("RandomNormal", without, 2));
  EXPECT_NE(at_step("RandomNormal", without, 2), at_step("RandomNormal", without, 3));
}

/// RandomState(2).binomial(1, p).
TEST(Random, BernoulliWithASeedIsNumPys) {
  const Tensor p = Tensor::from<double>({12}, {.1, .3, .5, .6, .7, .8, .9, .99, 0, 1, .2, .8});
  const auto drawn = call_op("Bernoulli", {p}, {{"seed", 2.0F}, {"dtype", 1}});
  EXPECT_THAT(floats(drawn[0]), ElementsAre(0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1));
}

TEST(Random, MultinomialDrawsByTheSoftmax) {
  // Probabilities 1/4, 3/4, 0.
  const Tensor scores = Tensor::from<float>({1, 3}, {0, std::log(3.0F), -1000});
  const auto drawn = call_op("Multinomial", {scores}, {{"sample_size", 10000}})[0];
  int ones = 0;
  for (const std::int32_t c : drawn.values<const std::int32_t>()) {
    ASSERT_LT(c, 2);
    ones += c;
  }
  EXPECT_NEAR(ones, 7500, 5 * 43);  // five standard deviations
}

/// RandomState(0).uniform() >= 1/2 of 0.5488, 0.7152, 0.6028, 0.5449, 0.4237.
TEST(Random, DropoutWithASeedDropsWhatTheReferenceDrops) {
  const Tensor ones = Tensor::full(DType::f32, {5}, 1.0);
  const Tensor ratio = Tensor::scalar(0.6F);
  const Tensor training = Tensor::full(DType::boolean, {}, 1.0);
  const auto y = call_op("Dropout", {ones, ratio, training}, {{"seed", 0}});
  EXPECT_THAT(floats(y[0]), ElementsAre(0, FloatNear(2.5F, 1e-5F), FloatNear(2.5F, 1e-5F), 0, 0));
}

TEST(Random, Refusals) {
  EXPECT_THROW(call_op("RandomNormal", {}, {}), Error);
  EXPECT_THROW(call_op("RandomNormal", {}, shaped({-1})), Error);
  EXPECT_THROW(call_op("RandomNormal", {}, shaped({1}, {{"dtype", 7}})), Error);
  EXPECT_THROW(call_op("RandomNormal", {}, shaped({1}, {{"seed", "three"}})), Error);
  EXPECT_THROW(call_op("Multinomial", {Tensor::zeros(DType::f32, {2, 0})}), Error);
}

}  // namespace
}  // namespace graft
