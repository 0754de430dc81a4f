#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using testing::rule_gradients;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> apply(const char* op, std::initializer_list<float> values) {
  return floats(call_op(op, {row(values)})[0]);
}

TEST(UnaryMath, RoundsHalvesToEven) {
  EXPECT_THAT(apply("Round", {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 2.4F, 2.6F}),
              ElementsAre(-2, -2, 0, 0, 2, 2, 2, 3));
  EXPECT_THAT(apply("Floor", {-1.5F, 1.5F, 2}), ElementsAre(-2, 1, 2));
  EXPECT_THAT(apply("Ceil", {-1.5F, 1.5F, 2}), ElementsAre(-1, 2, 2));
}

TEST(UnaryMath, Algebra) {
  EXPECT_THAT(apply("Neg", {-2, 3}), ElementsAre(2, -3));
  EXPECT_THAT(apply("Abs", {-2, 3, -0.0F}), ElementsAre(2, 3, 0));
  EXPECT_THAT(apply("Sign", {-2, 0, 3, kInfinity}), ElementsAre(-1, 0, 1, 1));
  EXPECT_TRUE(std::isnan(apply("Sign", {kNan})[0]));
  EXPECT_THAT(apply("Sqrt", {0, 4, 2.25F}), ElementsAre(0, 2, 1.5F));
  EXPECT_THAT(apply("Reciprocal", {4, -0.5F, 0}), ElementsAre(0.25F, -2, kInfinity));
  EXPECT_THAT(apply("Exp", {0, 1000, -1000}), ElementsAre(1, kInfinity, 0));
  EXPECT_FLOAT_EQ(apply("Exp", {1})[0], 2.7182818F);
  EXPECT_FLOAT_EQ(apply("Log", {10})[0], 2.3025851F);
  EXPECT_FLOAT_EQ(apply("Erf", {0.5F})[0], 0.5204999F);
}

TEST(UnaryMath, Trigonometry) {
  EXPECT_FLOAT_EQ(apply("Sin", {0.5F})[0], 0.47942554F);
  EXPECT_FLOAT_EQ(apply("Cos", {0.5F})[0], 0.87758256F);
  EXPECT_FLOAT_EQ(apply("Tan", {0.5F})[0], 0.54630249F);
  EXPECT_FLOAT_EQ(apply("Asin", {0.5F})[0], 0.52359878F);
  EXPECT_FLOAT_EQ(apply("Acos", {0.5F})[0], 1.04719755F);
  EXPECT_FLOAT_EQ(apply("Atan", {0.5F})[0], 0.46364761F);
  EXPECT_FLOAT_EQ(apply("Sinh", {0.5F})[0], 0.52109531F);
  EXPECT_FLOAT_EQ(apply("Cosh", {0.5F})[0], 1.12762597F);
  EXPECT_FLOAT_EQ(apply("Asinh", {0.5F})[0], 0.48121183F);
  EXPECT_FLOAT_EQ(apply("Acosh", {2})[0], 1.31695790F);
  EXPECT_FLOAT_EQ(apply("Atanh", {0.5F})[0], 0.54930614F);
}

TEST(UnaryMath, IntegersWrapRound) {
  const Tensor x = Tensor::from<std::int8_t>({3}, {-128, 5, 127});
  const auto values = [](const Tensor& tensor) {
    const auto span = tensor.values<std::int8_t>();
    return std::vector<int>(span.begin(), span.end());
  };
  EXPECT_THAT(values(call_op("Neg", {x})[0]), ElementsAre(-128, -5, -127));
  EXPECT_THAT(values(call_op("Abs", {x})[0]), ElementsAre(-128, 5, 127));
  EXPECT_THAT(values(call_op("Sign", {x})[0]), ElementsAre(-1, 1, 1));
}

TEST(UnaryMath, GradientsAtKinks) {
  EXPECT_THAT(floats(rule_gradients("Abs", {row({-2, 0, 3})}, row({5, 6, 7}))[0]),
              ElementsAre(-5, 0, 7));
  EXPECT_FALSE(rule_gradients("Round", {row({0.3F})}, row({1}))[0].defined());
  EXPECT_THAT(floats(rule_gradients("Sqrt", {row({4})}, row({1}))[0]), ElementsAre(0.25F));
}

}  // namespace
}  // namespace graft
