#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.values<const T>();
  return {span.begin(), span.end()};
}

/// Halves go to even, then the zero point is added, then the range cuts.
TEST(Quantize, RoundsThenShiftsThenLimits) {
  const Tensor x = Tensor::from<float>({6}, {1, 3, 5, -3, 1000, -1000});
  const Tensor two = Tensor::scalar(2.0F);
  EXPECT_THAT(values<std::uint8_t>(
                  call_op("QuantizeLinear", {x, two, Tensor::scalar<std::uint8_t>(128)})[0]),
              ElementsAre(128, 130, 130, 126, 255, 0));
  EXPECT_THAT(
      values<std::int8_t>(call_op("QuantizeLinear", {x, two, Tensor::scalar<std::int8_t>(1)})[0]),
      ElementsAre(1, 3, 3, -1, 127, -128));
}

TEST(Quantize, ScalesAlongAnAxisAndInBlocks) {
  const Tensor x = Tensor::from<float>({2, 3}, {2, 4, 6, 2, 4, 6});
  const Tensor columns = Tensor::from<float>({3}, {1, 2, 3});
  EXPECT_THAT(values<std::uint8_t>(call_op("QuantizeLinear", {x, columns})[0]),
              ElementsAre(2, 2, 2, 2, 2, 2));
  // Blocks of two along the rows: the last is cut short.
  const Tensor blocks = Tensor::from<float>({2, 2}, {1, 2, 2, 1});
  EXPECT_THAT(values<std::uint8_t>(call_op("QuantizeLinear", {x, blocks}, {{"block_size", 2}})[0]),
              ElementsAre(2, 4, 3, 1, 2, 6));
}

TEST(Quantize, SmallTypesArePacked) {
  const Tensor x = Tensor::from<float>({3}, {-9, 3, 100});
  const auto y = call_op("QuantizeLinear", {x, Tensor::scalar(1.0F)},
                         {{"output_dtype", static_cast<int>(DType::i4)}});
  EXPECT_EQ(y[0].dtype(), DType::i4);
  const auto* const bytes = static_cast<const std::uint8_t*>(y[0].data());
  EXPECT_EQ(bytes[0], 0x38);
  EXPECT_EQ(bytes[1], 0x07);
  EXPECT_THAT(floats(call_op("DequantizeLinear", {y[0], Tensor::scalar(0.5F)})[0]),
              ElementsAre(-4, 1.5F, 3.5F));
}

TEST(Quantize, WhatDoesNotFitIsRefused) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3});
  const Tensor four = Tensor::zeros(DType::f32, {4});
  EXPECT_THROW(call_op("QuantizeLinear", {x, four}), Error);
  EXPECT_THROW(call_op("QuantizeLinear", {x, Tensor::zeros(DType::f32, {2, 2})}), Error);
  EXPECT_THROW(call_op("QuantizeLinear", {x, four}, {{"axis", 7}}), Error);
  EXPECT_THROW(call_op("QuantizeLinear", {x, Tensor::scalar(1.0F), Tensor::scalar(1.0F)}), Error);
}

TEST(Quantize, BlocksOfNothingMustNotFillTheMemory) {
  const Shape many{std::int64_t{1} << 40, 0};
  testing::OneNode node("DequantizeLinear", "",
                        {Tensor::zeros(DType::i8, many), Tensor::zeros(DType::f32, many)}, 1,
                        {{"axis", 0}, {"block_size", 1}});
  EXPECT_EQ(kind_of([&] { passes::decompose(node.graph); }), ErrorKind::unsupported);
}

TEST(QuantizedProduct, MatMulSubtractsZeroPoints) {
  const Tensor a = Tensor::from<std::uint8_t>({2, 2}, {11, 7, 3, 10});
  const Tensor b = Tensor::from<std::int8_t>({2, 1}, {1, -1});
  EXPECT_THAT(values<std::int32_t>(call_op("MatMulInteger", {a, b})[0]), ElementsAre(4, -7));
  const Tensor rows = Tensor::from<std::uint8_t>({2}, {1, 2});
  EXPECT_THAT(values<std::int32_t>(
                  call_op("MatMulInteger", {a, b, rows, Tensor::scalar<std::int8_t>(-1)})[0]),
              ElementsAre(20, 2));
}

TEST(QuantizedProduct, ConvPadsWithTheZeroPoint) {
  const Tensor x = Tensor::from<std::uint8_t>({1, 1, 2}, {3, 5});
  const Tensor w = Tensor::from<std::uint8_t>({1, 1, 3}, {2, 2, 2});
  const Attributes pads{{"pads", AttributeValue(std::vector<std::int64_t>{1, 1})}};
  EXPECT_THAT(values<std::int32_t>(
                  call_op("ConvInteger", {x, w, Tensor::scalar<std::uint8_t>(1)}, pads)[0]),
              ElementsAre(12, 12));
}

TEST(QuantizedProduct, QLinearMatMulRoundsOnce) {
  const Tensor a = Tensor::from<std::int8_t>({1, 2}, {10, 20});
  const Tensor b = Tensor::from<std::int8_t>({2, 1}, {1, 1});
  const Tensor zero = Tensor::scalar<std::int8_t>(0);
  const auto y =
      call_op("QLinearMatMul", {a, Tensor::scalar(0.5F), zero, b, Tensor::scalar(0.5F), zero,
                                Tensor::scalar(3.0F), Tensor::scalar<std::int8_t>(5)});
  EXPECT_THAT(values<std::int8_t>(y[0]), ElementsAre(2 + 5));  // 7.5 / 3 = 2.5, to even
}

}  // namespace
}  // namespace graft
