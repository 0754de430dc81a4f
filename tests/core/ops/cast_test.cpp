#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor cast_to(DType dtype, const Tensor& x) {
  return call_op("Cast", {x}, {{"to", static_cast<int>(dtype)}})[0];
}
template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.values<const T>();
  return {span.begin(), span.end()};
}

TEST(Cast, FloatsToIntegersTruncateAndSaturate) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({6}, {1.9F, -1.9F, 300, -300, infinity, NAN});
  EXPECT_THAT(values<std::int8_t>(cast_to(DType::i8, x)), ElementsAre(1, -1, 127, -128, 127, 0));
  EXPECT_THAT(values<std::uint8_t>(cast_to(DType::u8, x)), ElementsAre(1, 0, 255, 0, 255, 0));
  EXPECT_THAT(values<std::int64_t>(cast_to(DType::i64, x)),
              ElementsAre(1, -1, 300, -300, INT64_MAX, 0));
}

TEST(Cast, IntegersKeepTheLowBits) {
  const Tensor x = Tensor::from<std::int16_t>({2}, {200, -1});
  EXPECT_THAT(values<std::int8_t>(cast_to(DType::i8, x)), ElementsAre(-56, -1));
  EXPECT_THAT(values<std::uint16_t>(cast_to(DType::u16, x)), ElementsAre(200, 65535));
}

TEST(Cast, BoolIsNotZero) {
  const Tensor x = Tensor::from<float>({4}, {0, -0.0F, 0.2F, NAN});
  EXPECT_THAT(values<bool>(cast_to(DType::boolean, x)), ElementsAre(false, false, true, true));
  EXPECT_THAT(floats(cast_to(DType::f32, Tensor::from<bool>({2}, {true, false}))),
              ElementsAre(1, 0));
}

/// 1 + 2^-11 lies between two halves; a little more must round up, though as a float it is a tie.
TEST(Cast, DoublesRoundOnceToHalf) {
  const double tie = 1.0 + std::ldexp(1.0, -11);
  const Tensor x = Tensor::from<double>({3}, {tie, tie + 1e-12, tie - 1e-12});
  const float above = 1.0F + std::ldexp(1.0F, -10);
  EXPECT_THAT(floats(cast_to(DType::f32, cast_to(DType::f16, x))), ElementsAre(1, above, 1));
  const double bf16_tie = -(1.0 + std::ldexp(1.0, -8));
  const Tensor z = Tensor::from<double>({2}, {bf16_tie, bf16_tie - 1e-12});
  EXPECT_THAT(floats(cast_to(DType::f32, cast_to(DType::bf16, z))),
              ElementsAre(-1, -1 - std::ldexp(1.0F, -7)));
}

TEST(Cast, HalfOverflowsToInfinity) {
  const Tensor x = Tensor::from<float>({2}, {65519.0F, 65520.0F});
  EXPECT_THAT(floats(cast_to(DType::f32, cast_to(DType::f16, x))),
              ElementsAre(65504, std::numeric_limits<float>::infinity()));
}

TEST(Cast, RefusesUnknownTypes) {
  const Tensor x = Tensor::zeros(DType::f32, {1});
  EXPECT_EQ(kind_of([&] { call_op("Cast", {x}, {{"to", 999}}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([&] { call_op("Cast", {x}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([&] { cast_to(DType::string, x); }), ErrorKind::unsupported);
}

TEST(CastLike, TakesTheTypeOfTheOther) {
  const Tensor x = Tensor::from<float>({1}, {2.5F});
  EXPECT_EQ(call_op("CastLike", {x, Tensor::scalar<std::int32_t>(0)})[0].dtype(), DType::i32);
}

}  // namespace
}  // namespace graft
