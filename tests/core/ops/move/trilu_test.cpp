#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using testing::rule_gradients;

TEST(Trilu, KeepsATriangle) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto k = [](std::int64_t value) { return Tensor::scalar(value); };
  EXPECT_THAT(floats(call_op("Trilu", {x})[0]), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(floats(call_op("Trilu", {x}, {{"upper", 0}})[0]), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(floats(call_op("Trilu", {x, k(1)})[0]), ElementsAre(0, 2, 3, 0, 0, 6));
  EXPECT_THAT(floats(call_op("Trilu", {x, k(INT64_MIN)})[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(floats(call_op("Trilu", {x, k(INT64_MAX)})[0]), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(kind_of([] { call_op("Trilu", {Tensor::zeros(DType::f32, {3})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] {
              call_op("Trilu", {x, Tensor::zeros(DType::i64, {0})});
            }),
            ErrorKind::shape);
  EXPECT_EQ(kind_of([&] {
              call_op("Trilu", {x, Tensor::zeros(DType::i32, {})});
            }),
            ErrorKind::type);
}

TEST(CumSum, EveryDirection) {
  const Tensor x = Tensor::from<float>({3}, {1, 2, 3});
  const Tensor axis = Tensor::scalar<std::int64_t>(0);
  const auto sums = [&](int exclusive, int reverse) {
    return floats(
        call_op("CumSum", {x, axis}, {{"exclusive", exclusive}, {"reverse", reverse}})[0]);
  };
  EXPECT_THAT(sums(0, 0), ElementsAre(1, 3, 6));
  EXPECT_THAT(sums(1, 0), ElementsAre(0, 1, 3));
  EXPECT_THAT(sums(0, 1), ElementsAre(6, 5, 3));
  EXPECT_THAT(sums(1, 1), ElementsAre(5, 3, 0));
}

TEST(CumProd, GradientPassesZeros) {
  const Tensor x = Tensor::from<float>({3}, {2, 0, 3});
  const Tensor axis = Tensor::from<std::int64_t>({1}, {0});
  EXPECT_THAT(floats(call_op("CumProd", {x, axis})[0]), ElementsAre(2, 0, 0));
  // y = (a, ab, abc): the sum has the gradient (1 + b + bc, a + ac, ab).
  const Tensor dy = Tensor::from<float>({3}, {1, 1, 1});
  EXPECT_THAT(floats(rule_gradients("CumProd", {x, axis}, dy)[0]), ElementsAre(1, 8, 0));
}

}  // namespace
}  // namespace graft
