#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;

template <class T>
Tensor row(std::initializer_list<T> values) {
  return Tensor::from<T>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<int> numbers(const Tensor& tensor) {
  std::vector<int> result;
  for (const double value : to_double(tensor)) result.push_back(static_cast<int>(value));
  return result;
}

TEST(Bitwise, TruthTableOfBits) {
  const Tensor a = row<std::uint8_t>({0b1100, 255});
  const Tensor b = row<std::uint8_t>({0b1010, 0});
  EXPECT_THAT(numbers(call_op("BitwiseAnd", {a, b})[0]), ElementsAre(0b1000, 0));
  EXPECT_THAT(numbers(call_op("BitwiseOr", {a, b})[0]), ElementsAre(0b1110, 255));
  EXPECT_THAT(numbers(call_op("BitwiseXor", {a, b})[0]), ElementsAre(0b0110, 255));
  EXPECT_THAT(numbers(call_op("BitwiseNot", {a})[0]), ElementsAre(0b11110011, 0));
  EXPECT_THAT(numbers(call_op("BitwiseNot", {row<std::int32_t>({5, -1})})[0]), ElementsAre(-6, 0));
}

TEST(BitShift, UnsignedNumbers) {
  const Tensor x = row<std::uint8_t>({16, 4, 1, 255, 255});
  const Tensor amount = row<std::uint8_t>({1, 2, 3, 8, 200});
  EXPECT_THAT(numbers(call_op("BitShift", {x, amount}, {{"direction", "RIGHT"}})[0]),
              ElementsAre(8, 1, 0, 0, 0));
  EXPECT_THAT(numbers(call_op("BitShift", {x, amount}, {{"direction", "LEFT"}})[0]),
              ElementsAre(32, 16, 8, 0, 0));
}

/// Opset 28: the sign bit fills up; amounts outside of the type leave nothing else.
TEST(BitShift, SignedNumbers) {
  const Tensor x = row<std::int8_t>({-8, -1, 64, -128, 5, -5});
  const Tensor amount = row<std::int8_t>({1, 7, 1, 8, -1, -1});
  EXPECT_THAT(numbers(call_op("BitShift", {x, amount}, {{"direction", "RIGHT"}})[0]),
              ElementsAre(-4, -1, 32, -1, 0, -1));
  EXPECT_THAT(numbers(call_op("BitShift", {x, amount}, {{"direction", "LEFT"}})[0]),
              ElementsAre(-16, -128, -128, 0, 0, 0));
}

TEST(BitShift, WantsADirection) {
  const Tensor x = row<std::uint8_t>({1});
  EXPECT_EQ(kind_of([&] { call_op("BitShift", {x, x}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] { call_op("BitShift", {x, x}, {{"direction", "UP"}}); }), ErrorKind::model);
}

}  // namespace
}  // namespace graft
