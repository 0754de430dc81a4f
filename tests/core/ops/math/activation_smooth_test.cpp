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

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

TEST(SmoothActivation, KnownValues) {
  EXPECT_THAT(apply("Sigmoid", {0, 1}), ElementsAre(0.5F, FloatEq(0.73105858F)));
  EXPECT_THAT(apply("Tanh", {0, 1}), ElementsAre(0, FloatEq(0.76159416F)));
  EXPECT_THAT(apply("Softplus", {0, 1}), ElementsAre(FloatEq(0.69314718F), FloatEq(1.3132617F)));
  EXPECT_THAT(apply("Softsign", {-1, 3}), ElementsAre(-0.5F, 0.75F));
  EXPECT_THAT(apply("Mish", {0, 1}), ElementsAre(0, FloatEq(0.86509839F)));
  EXPECT_THAT(apply("Gelu", {-1, 0, 1}),
              ElementsAre(FloatEq(-0.15865525F), 0, FloatEq(0.84134475F)));
  EXPECT_THAT(apply("Gelu", {-1, 0, 1}, {{"approximate", "tanh"}}),
              ElementsAre(FloatEq(-0.15880801F), 0, FloatEq(0.84119199F)));
  EXPECT_THAT(apply("Swish", {1}), ElementsAre(FloatEq(0.73105858F)));
  EXPECT_THAT(apply("Swish", {1}, {{"alpha", 2.0F}}), ElementsAre(FloatEq(0.88079708F)));
}

TEST(SmoothActivation, NeitherOverflowsNorLosesSmallNumbers) {
  EXPECT_THAT(apply("Softplus", {-30, 100, 1e30F}),
              ElementsAre(FloatEq(9.3576230e-14F), 100, 1e30F));
  EXPECT_THAT(apply("Softplus", {kInfinity, -kInfinity}), ElementsAre(kInfinity, 0));
  EXPECT_THAT(apply("Sigmoid", {-1000, -20, 1000}), ElementsAre(0, FloatEq(2.0611537e-9F), 1));
  EXPECT_THAT(apply("Tanh", {1e-10F, -1000}), ElementsAre(1e-10F, -1));
  EXPECT_THAT(apply("Mish", {-20, 1e30F}), ElementsAre(FloatEq(-4.1223073e-8F), 1e30F));
  EXPECT_THAT(apply("Swish", {-1000, 1e30F}), ElementsAre(0, 1e30F));
  EXPECT_THAT(apply("Gelu", {-1000, 1e30F}), ElementsAre(0, 1e30F));
}

TEST(SmoothActivation, KnownSlopes) {
  EXPECT_THAT(slope("Sigmoid", {0}), ElementsAre(0.25F));
  EXPECT_THAT(slope("Tanh", {0}), ElementsAre(1));
  EXPECT_THAT(slope("Softplus", {0, -200, 200}), ElementsAre(0.5F, 0, 1));
  EXPECT_THAT(slope("Softsign", {-1, 0}), ElementsAre(0.25F, 1));
  EXPECT_THAT(slope("Mish", {0, 100, -100}), ElementsAre(FloatEq(0.6F), 1, FloatNear(0, 1e-30F)));
  EXPECT_THAT(slope("Mish", {1e20F, 1e30F}), ElementsAre(1, 1));
  EXPECT_THAT(slope("Gelu", {0, 1}), ElementsAre(0.5F, FloatEq(1.0833155F)));
  EXPECT_THAT(slope("Gelu", {0, 1}, {{"approximate", "tanh"}}),
              ElementsAre(0.5F, FloatEq(1.0829640F)));
  EXPECT_THAT(slope("Swish", {0, 1, 200, -200}), ElementsAre(0.5F, FloatEq(0.92767051F), 1, 0));
}

TEST(SmoothActivation, RefusesUnknownApproximation) {
  EXPECT_EQ(kind_of([] { apply("Gelu", {1}, {{"approximate", "cubic"}}); }), ErrorKind::model);
}

}  // namespace
}  // namespace graft
