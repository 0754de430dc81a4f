#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;

constexpr float kThird = 1.0F / 3;

// exp(log 1), exp(log 2), exp(log 3) over their sum.
Tensor logs() {
  return Tensor::from<float>({1, 3}, {0.0F, std::log(2.0F), std::log(3.0F)});
}

TEST(Softmax, KnownRow) {
  EXPECT_THAT(floats(call_op("Softmax", {logs()})[0]),
              ElementsAre(FloatEq(1.0F / 6), FloatEq(2.0F / 6), FloatEq(3.0F / 6)));
  EXPECT_THAT(floats(call_op("LogSoftmax", {logs()})[0]),
              ElementsAre(FloatEq(std::log(1.0F / 6)), FloatEq(std::log(2.0F / 6)),
                          FloatEq(std::log(0.5F))));
}

TEST(Softmax, LargeScoresDoNotOverflow) {
  const Tensor x = Tensor::from<float>({2, 2}, {1000, 1000, -1000, -1001});
  EXPECT_THAT(floats(call_op("Softmax", {x})[0]),
              ElementsAre(0.5F, 0.5F, FloatEq(1 / (1 + std::exp(-1.0F))),
                          FloatEq(1 / (1 + std::exp(1.0F)))));
  EXPECT_THAT(floats(call_op("LogSoftmax", {x})[0])[0], FloatEq(std::log(0.5F)));
}

TEST(Softmax, MinusInfinityMasks) {
  const float none = -std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({1, 4}, {none, 2, 2, none});
  EXPECT_THAT(floats(call_op("Softmax", {x})[0]), ElementsAre(0, 0.5F, 0.5F, 0));
  EXPECT_THAT(floats(call_op("Softmax", {x.reshaped({4, 1})}, {{"axis", 0}})[0]),
              ElementsAre(0, 0.5F, 0.5F, 0));
}

TEST(Softmax, BeforeOpset13AxesFromAxisOnAreJoined) {
  const Tensor zeros = Tensor::zeros(DType::f32, {2, 3, 2});
  const Tensor joined = call_old_op("Softmax", 11, {zeros});
  EXPECT_EQ(joined.shape(), Shape({2, 3, 2}));
  EXPECT_THAT(floats(joined)[0], FloatEq(1.0F / 6));
  EXPECT_THAT(floats(call_old_op("Softmax", 11, {zeros}, {{"axis", 2}}))[0], FloatEq(0.5F));
  EXPECT_THAT(floats(call_old_op("Softmax", 11, {zeros}, {{"axis", 0}}))[0], FloatEq(1.0F / 12));
  EXPECT_THAT(floats(call_old_op("Softmax", 11, {zeros}, {{"axis", -2}}))[0], FloatEq(1.0F / 6));
  EXPECT_THAT(floats(call_old_op("Softmax", 13, {zeros}, {{"axis", 1}}))[0], FloatEq(kThird));
  EXPECT_THAT(floats(call_old_op("Hardmax", 11, {zeros})),
              ElementsAre(1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0));
}

TEST(Softmax, GradientOfAKnownRow) {
  // y = (1/6, 1/3, 1/2), dy = (6, 0, 0): sum(y dy) = 1; dx = y (dy - 1).
  const Tensor y = Tensor::from<float>({1, 3}, {1.0F / 6, kThird, 0.5F});
  const Tensor dy = Tensor::from<float>({1, 3}, {6, 0, 0});
  EXPECT_THAT(floats(testing::call_internal_op("SoftmaxGrad", {y, dy})[0]),
              ElementsAre(FloatEq(5.0F / 6), FloatEq(-kThird), FloatEq(-0.5F)));
  // LogSoftmax: dx = dy - exp(log y) sum(dy) = (6,0,0) - 6 y.
  const Tensor log_y = call_op("LogSoftmax", {logs()})[0];
  EXPECT_THAT(floats(testing::call_internal_op("LogSoftmaxGrad", {log_y, dy})[0]),
              ElementsAre(FloatNear(5, 1e-5F), FloatNear(-2, 1e-5F), FloatNear(-3, 1e-5F)));
}

TEST(Softmax, RefusesAnAxisOutOfRange) {
  EXPECT_THROW(call_op("Softmax", {logs()}, {{"axis", 2}}), Error);
  EXPECT_THROW(call_op("Softmax", {Tensor::scalar(1.0F)}), Error);
  EXPECT_THROW(call_old_op("Softmax", 11, {logs()}, {{"axis", 5}}), Error);
}

TEST(ArgReduce, TiesAndNan) {
  const Tensor x = Tensor::from<float>({2, 3}, {5, 5, 1, 2, std::nanf(""), 9});
  const auto indices = [&](const char* op, Attributes attributes) {
    const Tensor y = call_op(op, {x}, std::move(attributes))[0];
    const auto values = y.values<const std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  EXPECT_THAT(indices("ArgMax", {{"axis", 1}}), ElementsAre(0, 1));
  EXPECT_THAT(indices("ArgMax", {{"axis", 1}, {"select_last_index", 1}}), ElementsAre(1, 1));
  EXPECT_THAT(indices("ArgMin", {{"axis", 1}}), ElementsAre(2, 1));
  EXPECT_THAT(indices("ArgMin", {}), ElementsAre(1, 1, 0));
  EXPECT_EQ(call_op("ArgMax", {x}, {{"axis", 1}, {"keepdims", 0}})[0].shape(), Shape({2}));
}

TEST(ArgReduce, AnEmptyAxisHasNoExtreme) {
  EXPECT_THROW(call_op("ArgMax", {Tensor::zeros(DType::f32, {2, 0})}, {{"axis", 1}}), Error);
}

}  // namespace
}  // namespace graft
