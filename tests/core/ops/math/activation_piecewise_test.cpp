#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/error_of.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;
using testing::rule_gradients;

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> apply(const char* op, std::initializer_list<float> values,
                         const Attributes& attributes = {}) {
  return floats(call_op(op, {row(values)}, attributes)[0]);
}

/// Of the output's sum.
std::vector<float> slope(const char* op, std::initializer_list<float> values,
                         const Attributes& attributes = {}) {
  const Tensor ones = Tensor::full(DType::f32, {static_cast<std::int64_t>(values.size())}, 1.0);
  return floats(rule_gradients(op, {row(values)}, ones, attributes)[0]);
}

TEST(PiecewiseActivation, Values) {
  EXPECT_THAT(apply("Relu", {-2, 0, 3}), ElementsAre(0, 0, 3));
  EXPECT_TRUE(std::isnan(apply("Relu", {NAN})[0]));
  EXPECT_THAT(apply("LeakyRelu", {-2, 3}), ElementsAre(FloatEq(-0.02F), 3));
  EXPECT_THAT(apply("LeakyRelu", {-2, 3}, {{"alpha", 0.5F}}), ElementsAre(-1, 3));
  EXPECT_THAT(apply("ThresholdedRelu", {-2, 1, 1.5F}), ElementsAre(0, 0, 1.5F));
  EXPECT_THAT(apply("ThresholdedRelu", {2, 3}, {{"alpha", 2.0F}}), ElementsAre(0, 3));
  EXPECT_THAT(apply("Elu", {-1, 2}), ElementsAre(FloatEq(-0.63212056F), 2));
  EXPECT_THAT(apply("Elu", {-1, 2}, {{"alpha", 2.0F}}), ElementsAre(FloatEq(-1.2642411F), 2));
  EXPECT_THAT(apply("Selu", {-1, 1}), ElementsAre(FloatEq(-1.1113307F), FloatEq(1.0507010F)));
  EXPECT_THAT(apply("Celu", {-1, 2}, {{"alpha", 2.0F}}), ElementsAre(FloatEq(-0.78693868F), 2));
  EXPECT_THAT(apply("HardSigmoid", {-5, 0, 1, 5}), ElementsAre(0, 0.5F, FloatEq(0.7F), 1));
  EXPECT_THAT(apply("HardSwish", {-4, -3, 1, 3, 5}), ElementsAre(0, 0, FloatEq(2.0F / 3), 3, 5));
}

TEST(PiecewiseActivation, WholeNumbers) {
  const Tensor x = Tensor::from<std::int32_t>({3}, {-7, 0, 7});
  EXPECT_THAT(to_double(call_op("Relu", {x})[0]), ElementsAre(0, 0, 7));
  const Tensor slope_of_2 = Tensor::from<std::int32_t>({1}, {2});
  EXPECT_THAT(to_double(call_op("PRelu", {x, slope_of_2})[0]), ElementsAre(-14, 0, 7));
}

/// Kinks as in PyTorch.
/// By bits, where NaN of either sign, infinities and minus zero must not be taken for others.
TEST(Relu, OfBf16) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = row({-1.5F, 1.5F, -0.0F, kInfinity, -kInfinity, kNaN, -kNaN, -1e-39F});
  const Tensor short_x = x.cast(DType::bf16);
  const std::vector<float> y = floats(call_op("Relu", {short_x})[0].cast(DType::f32));
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 5), ElementsAre(0, 1.5F, 0, kInfinity, 0));
  EXPECT_TRUE(std::isnan(y[5]) && std::isnan(y[6]));
  EXPECT_EQ(y[7], 0);
  const Tensor dy = Tensor::full(DType::bf16, {8}, 2.0);
  const Tensor dx = testing::call_internal_op("ReluGrad", {short_x, dy})[0];
  EXPECT_THAT(floats(dx.cast(DType::f32)), ElementsAre(0, 2, 0, 2, 0, 2, 2, 0));
}

TEST(PiecewiseActivation, SlopesAtKinks) {
  EXPECT_THAT(slope("Relu", {-1, 0, 1}), ElementsAre(0, 0, 1));
  EXPECT_THAT(slope("LeakyRelu", {-1, 0, 1}, {{"alpha", 0.5F}}), ElementsAre(0.5F, 0.5F, 1));
  EXPECT_THAT(slope("ThresholdedRelu", {0.5F, 1, 2}), ElementsAre(0, 0, 1));
  EXPECT_THAT(slope("Elu", {0, 200}, {{"alpha", 2.0F}}), ElementsAre(2, 1));
  EXPECT_THAT(slope("Celu", {0, 1}, {{"alpha", 2.0F}}), ElementsAre(1, 1));
  EXPECT_THAT(slope("HardSigmoid", {-2.5F, 0, 2.5F}), ElementsAre(0, FloatEq(0.2F), 0));
  EXPECT_THAT(slope("HardSwish", {-3, 0, 3, 4}), ElementsAre(0, 0.5F, 1, 1));
}

TEST(PRelu, SlopePerChannel) {
  const Tensor x = Tensor::from<float>({1, 2, 2}, {-1, 1, -1, 0});
  const Tensor slopes = Tensor::from<float>({2, 1}, {0.5F, 0.25F});
  EXPECT_THAT(floats(call_op("PRelu", {x, slopes})[0]), ElementsAre(-0.5F, 1, -0.25F, 0));
  const Tensor dy = Tensor::full(DType::f32, {1, 2, 2}, 1.0);
  const auto gradients = rule_gradients("PRelu", {x, slopes}, dy);
  EXPECT_THAT(floats(gradients[0]), ElementsAre(0.5F, 1, 0.25F, 0.25F));
  EXPECT_THAT(floats(gradients[1]), ElementsAre(-1, 0, -1, 0));
}

TEST(PRelu, SlopeMustBroadcastToTheInput) {
  const Tensor slopes = Tensor::full(DType::f32, {2, 3}, 0.5);
  EXPECT_EQ(kind_of([&] { call_op("PRelu", {row({1, 2, 3}), slopes}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
