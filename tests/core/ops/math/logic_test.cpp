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
Tensor truths(std::initializer_list<bool> values) {
  return Tensor::from<bool>({static_cast<std::int64_t>(values.size())}, values);
}
std::vector<double> numbers(const Tensor& tensor) {
  return to_double(tensor);
}

TEST(Comparison, OrderAndNan) {
  const Tensor a = row({1, 2, 3, NAN});
  const Tensor b = row({2, 2, 2, NAN});
  EXPECT_THAT(numbers(call_op("Equal", {a, b})[0]), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(numbers(call_op("Less", {a, b})[0]), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(numbers(call_op("LessOrEqual", {a, b})[0]), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(numbers(call_op("Greater", {a, b})[0]), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(numbers(call_op("GreaterOrEqual", {a, b})[0]), ElementsAre(0, 1, 1, 0));
}

TEST(Comparison, LargeUnsignedNumbers) {
  const Tensor a = Tensor::from<std::uint64_t>({1}, {18446744073709551615U});
  const Tensor b = Tensor::from<std::uint64_t>({1}, {1U});
  EXPECT_THAT(numbers(call_op("Greater", {a, b})[0]), ElementsAre(1));
}

TEST(Logic, TruthTable) {
  const Tensor a = truths({false, false, true, true});
  const Tensor b = truths({false, true, false, true});
  EXPECT_THAT(numbers(call_op("And", {a, b})[0]), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(numbers(call_op("Or", {a, b})[0]), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(numbers(call_op("Xor", {a, b})[0]), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(numbers(call_op("Equal", {a, b})[0]), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(numbers(call_op("Not", {b})[0]), ElementsAre(1, 0, 1, 0));
}

/// Any byte but 0 is true, wherever it comes from.
TEST(Logic, OddBytesAreTrue) {
  const std::uint8_t bytes[] = {2, 0, 255};
  const Tensor odd = Tensor::from_bytes(DType::boolean, {3}, bytes, sizeof bytes);
  const Tensor one = truths({true, true, true});
  EXPECT_THAT(numbers(call_op("Equal", {odd, one})[0]), ElementsAre(1, 0, 1));
  EXPECT_THAT(numbers(call_op("Not", {odd})[0]), ElementsAre(0, 1, 0));
  EXPECT_THAT(floats(call_op("Where", {odd, row({1, 2, 3}), row({4, 5, 6})})[0]),
              ElementsAre(1, 5, 3));
}

TEST(Logic, WantsTruthValues) {
  EXPECT_EQ(kind_of([] { call_op("And", {row({1}), row({1})}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { call_op("Not", {row({1})}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { call_op("Where", {row({1}), row({1}), row({1})}); }), ErrorKind::type);
}

TEST(Logic, NanAndInfinity) {
  const Tensor x = row({NAN, kInfinity, -kInfinity, 1});
  EXPECT_THAT(numbers(call_op("IsNaN", {x})[0]), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(numbers(call_op("IsInf", {x})[0]), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(numbers(call_op("IsInf", {x}, {{"detect_negative", 0}})[0]), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(numbers(call_op("IsInf", {x}, {{"detect_positive", 0}})[0]), ElementsAre(0, 0, 1, 0));
}

TEST(Where, GradientGoesToTheChosenSide) {
  const auto gradients = rule_gradients("Where", {truths({true, false}), row({1, 2}), row({3, 4})},
                                        row({5, kInfinity}));
  EXPECT_FALSE(gradients[0].defined());
  EXPECT_THAT(floats(gradients[1]), ElementsAre(5, 0));
  EXPECT_THAT(floats(gradients[2]), ElementsAre(0, kInfinity));
}

}  // namespace
}  // namespace graft
