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

/// Elements of a type of at most 8 bits by their bits.
Tensor of_bits(DType dtype, const Shape& shape, std::vector<std::uint8_t> bytes) {
  return Tensor::from_bytes(dtype, shape, bytes.data(), bytes.size());
}
std::vector<int> bits(const Tensor& tensor) {
  const auto* const bytes = static_cast<const std::uint8_t*>(tensor.data());
  return {bytes, bytes + tensor.bytes()};
}

TEST(Cast, Float8RoundsToEvenAndSaturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  // 1.0625 and 1.1875 lie half way between steps of 1/8; 2^-10 is half the least subnormal.
  const Tensor x = Tensor::from<float>(
      {8}, {1.0625F, 1.1875F, -0.0F, 0x1p-10F, 0x1.8p-10F, 448, 1e6F, -infinity});
  EXPECT_THAT(bits(cast_to(DType::f8e4m3fn, x)),
              ElementsAre(0x38, 0x3a, 0x80, 0x00, 0x01, 0x7e, 0x7e, 0xfe));
  const auto open =
      call_op("Cast", {x}, {{"to", static_cast<int>(DType::f8e5m2)}, {"saturate", 0}});
  EXPECT_THAT(bits(open[0]), ElementsAre(0x3c, 0x3d, 0x80, 0x14, 0x16, 0x5f, 0x7c, 0xfc));
}

TEST(Cast, Float8WithoutNegativeZero) {
  const Tensor x = Tensor::from<float>({4}, {-0.0F, -1e-9F, NAN, -240});
  EXPECT_THAT(bits(cast_to(DType::f8e4m3fnuz, x)), ElementsAre(0x00, 0x00, 0x80, 0xff));
  EXPECT_THAT(floats(cast_to(DType::f32, of_bits(DType::f8e4m3fnuz, {2}, {0xff, 0x01}))),
              ElementsAre(-240, 0x1p-10F));
}

TEST(Cast, ScalesArePowersOfTwo) {
  const Tensor x = Tensor::from<float>({4}, {1, 1.25F, 1.5F, 1.75F});
  const auto rounded = [&](const char* mode) {
    return bits(
        call_op("Cast", {x}, {{"to", static_cast<int>(DType::f8e8m0)}, {"round_mode", mode}})[0]);
  };
  EXPECT_THAT(rounded("up"), ElementsAre(127, 128, 128, 128));
  EXPECT_THAT(rounded("down"), ElementsAre(127, 127, 127, 127));
  EXPECT_THAT(rounded("nearest"), ElementsAre(127, 127, 128, 128));
  EXPECT_THAT(floats(cast_to(DType::f32, of_bits(DType::f8e8m0, {2}, {126, 130}))),
              ElementsAre(0.5F, 8));
}

TEST(Cast, SmallTypesArePackedFromTheLowBits) {
  const Tensor x = Tensor::from<float>({3}, {1.9F, -2.9F, 7});
  EXPECT_THAT(bits(cast_to(DType::i4, x)), ElementsAre(0xe1, 0x07));
  EXPECT_THAT(bits(cast_to(DType::u2, Tensor::from<std::int32_t>({5}, {1, 2, 3, 4, 1}))),
              ElementsAre(0b00111001, 0b01));
  EXPECT_THAT(floats(cast_to(DType::f32, of_bits(DType::i4, {3}, {0xe1, 0x07}))),
              ElementsAre(1, -2, 7));
  EXPECT_THAT(floats(cast_to(DType::f32, of_bits(DType::f4e2m1, {4}, {0x71, 0xb4}))),
              ElementsAre(0.5F, 6, 2, -1.5F));
}

TEST(BitCast, KeepsTheBits) {
  const Tensor x = Tensor::from<float>({1}, {1});
  EXPECT_THAT(values<std::int32_t>(call_op("BitCast", {x}, {{"to", 6}})[0]),
              ElementsAre(0x3f800000));
  EXPECT_THROW(call_op("BitCast", {x}, {{"to", 7}}), Error);
  const Tensor byte = Tensor::from<std::uint8_t>({1}, {2});
  EXPECT_THROW(call_op("BitCast", {byte}, {{"to", static_cast<int>(DType::boolean)}}), Error);
}

}  // namespace
}  // namespace graft
