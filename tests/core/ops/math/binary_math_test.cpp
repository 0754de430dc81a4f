#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/error_of.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using testing::rule_gradients;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}
Tensor integers(std::initializer_list<std::int64_t> values) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}
std::vector<std::int64_t> numbers(const Tensor& tensor) {
  return to_int64(tensor);
}

TEST(Pow, MixedTypesGiveTheTypeOfTheBase) {
  EXPECT_THAT(floats(call_op("Pow", {row({1, 2, -3}), integers({4, -2, 3})})[0]),
              ElementsAre(1, 0.25F, -27));
  EXPECT_THAT(numbers(call_op("Pow", {integers({1, 2, 3}), row({4, 5, 0.5F})})[0]),
              ElementsAre(1, 32, 1));
  EXPECT_THAT(numbers(call_op("Pow", {integers({10, 10}), row({30, -1})})[0]),
              ElementsAre(std::numeric_limits<std::int64_t>::max(), 0));
}

TEST(Pow, WholeNumbers) {
  EXPECT_THAT(numbers(call_op("Pow", {integers({-2, 3, 0, 7}), integers({63, 4, 0, 1})})[0]),
              ElementsAre(std::numeric_limits<std::int64_t>::min(), 81, 1, 7));
  EXPECT_THAT(
      numbers(call_op("Pow", {integers({1, -1, -1, 2, 0}), integers({-3, -3, -2, -1, -1})})[0]),
      ElementsAre(1, -1, 1, 0, 0));
}

/// The fast ways for constant exponents agree with the general one where they could differ.
TEST(Pow, ConstantExponents) {
  const Tensor x = row({-kInfinity, -0.0F, 0, 4, kInfinity});
  EXPECT_THAT(floats(call_op("Pow", {x, row({0.5F})})[0]),
              ElementsAre(kInfinity, 0, 0, 2, kInfinity));
  EXPECT_FALSE(std::signbit(floats(call_op("Pow", {row({-0.0F}), row({0.5F})})[0])[0]));
  EXPECT_THAT(floats(call_op("Pow", {row({-2, 0.5F}), row({-1})})[0]), ElementsAre(-0.5F, 2));
  EXPECT_THAT(floats(call_op("Pow", {row({-2, 4}), row({-0.5F})})[0]),
              ElementsAre(::testing::NanSensitiveFloatEq(NAN), 0.5F));
  EXPECT_THAT(floats(call_op("Pow", {row({-2, 5}), row({0})})[0]), ElementsAre(1, 1));
}

/// As PyTorch's pow_backward: 0 where the exponent is 0; 0 where the base is 0 and the exponent is
/// not negative.
TEST(Pow, GradientAtZero) {
  const auto gradients =
      rule_gradients("Pow", {row({0, 0, 0, 2}), row({0, 1, 2, 3})}, row({1, 1, 1, 1}));
  EXPECT_THAT(floats(gradients[0]), ElementsAre(0, 1, 0, 12));
  EXPECT_THAT(floats(gradients[1]), ElementsAre(0, 0, 0, ::testing::FloatEq(5.5451774F)));
}

TEST(Mod, WholeNumbersTakeTheSignOfTheDivisorUnlessFmod) {
  const Tensor a = integers({-4, 7, 5, 4, -7, 8, 5});
  const Tensor b = integers({2, -3, 8, -2, 3, 5, 0});
  EXPECT_THAT(numbers(call_op("Mod", {a, b})[0]), ElementsAre(0, -2, 5, 0, 2, 3, 0));
  EXPECT_THAT(numbers(call_op("Mod", {a, b}, {{"fmod", 1}})[0]), ElementsAre(0, 1, 5, 0, -1, 3, 0));
  const Tensor least = integers({std::numeric_limits<std::int64_t>::min()});
  EXPECT_THAT(numbers(call_op("Mod", {least, integers({-1})})[0]), ElementsAre(0));
}

TEST(Mod, Floats) {
  const Tensor a = row({-4, 5, -3, 3, -3});
  const Tensor b = row({3, -3, 3, -kInfinity, 0});
  EXPECT_THAT(floats(call_op("Mod", {a, b})[0]),
              ElementsAre(2, -1, 0, -kInfinity, ::testing::NanSensitiveFloatEq(NAN)));
  EXPECT_THAT(floats(call_op("Mod", {a, b}, {{"fmod", 1}})[0]),
              ElementsAre(-1, 2, 0, 3, ::testing::NanSensitiveFloatEq(NAN)));
  EXPECT_TRUE(std::signbit(floats(call_op("Mod", {row({3}), row({-3})})[0])[0]));
  EXPECT_EQ(kind_of([&] { call_op("Mod", {a, b}, {{"fmod", 2}}); }), ErrorKind::model);
}

}  // namespace
}  // namespace graft
