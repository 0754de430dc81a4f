#include <gmock/gmock.h>

#include <algorithm>

#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor half(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from<float>(shape, values).cast(DType::f16);
}
std::vector<float> result(const std::vector<Tensor>& outputs) {
  return floats(outputs[0].cast(DType::f32));
}

TEST(AsF32, ElementWise) {
  const Tensor x = half({2}, {1.5F, -2});
  const auto product = call_op("Mul", {x, half({1}, {2})});
  EXPECT_EQ(product[0].dtype(), DType::f16);
  EXPECT_THAT(result(product), ElementsAre(3, -4));
  EXPECT_EQ(call_op("Greater", {x, x})[0].dtype(), DType::boolean);
  const Tensor b = x.cast(DType::bf16);
  EXPECT_THAT(result(call_op("Relu", {b})), ElementsAre(1.5F, 0));
}

/// 2048 + 1 has no f16 between 2048 and 2050: a sum in f16 would stay at 2048.
TEST(AsF32, SumsKeepTheirDigits) {
  const Tensor a = half({1, 3}, {2048, 1, 1});
  EXPECT_THAT(result(call_op("MatMul", {a, half({3, 1}, {1, 1, 1})})), ElementsAre(2050));
}

TEST(AsF32, OneTensorTwiceAndConstantsAsF32) {
  const Tensor x = half({2}, {3, -1});
  Graph graph;
  Builder builder(graph);
  Value* const value = builder.constant(x);
  const Node* const square = builder.node("Mul", "", {value, value}, 1);
  EXPECT_THAT(result(evaluate(*square, {x, x})), ElementsAre(9, 1));
  EXPECT_THAT(result(call_op("Clip", {x, half({}, {0}), half({}, {2})})), ElementsAre(2, 0));
}

/// Longer than a block, with an operand that stands still, a bool result and a bool operand.
TEST(AsF32, RunsAreComputedByBlocks) {
  std::vector<float> numbers(1300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 200);
  const Tensor x = Tensor::from<float>({1300}, numbers).cast(DType::bf16);
  const Tensor limit = Tensor::from<float>({}, std::vector<float>{100}).cast(DType::bf16);
  const Tensor is_less = call_op("Less", {x, limit})[0];
  const std::vector<float> chosen = result(call_op("Where", {is_less, x, limit}));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(chosen[i], std::min(numbers[i], 100.0F)) << i;
  }
}

TEST(AsF32, OtherTypesAreStillRefused) {
  const Tensor x = Tensor::zeros(DType::boolean, {2});
  EXPECT_THROW(call_op("Exp", {x}), Error);
}

}  // namespace
}  // namespace graft
