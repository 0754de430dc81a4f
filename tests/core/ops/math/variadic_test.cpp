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

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Variadic, ThreeInputsBroadcast) {
  const Tensor column = Tensor::from<float>({2, 1}, {10, 20});
  const std::vector<Tensor> inputs{row({1, 25}), column, Tensor::scalar(15.0F)};
  EXPECT_THAT(floats(call_op("Sum", inputs)[0]), ElementsAre(26, 50, 36, 60));
  EXPECT_THAT(floats(call_op("Max", inputs)[0]), ElementsAre(15, 25, 20, 25));
  EXPECT_THAT(floats(call_op("Min", inputs)[0]), ElementsAre(1, 10, 1, 15));
  EXPECT_THAT(floats(call_op("Mean", {row({1, 25}), row({3, 5})})[0]), ElementsAre(2, 15));
  EXPECT_THAT(floats(call_op("Mean", {row({1, 25})})[0]), ElementsAre(1, 25));
}

TEST(Variadic, NanWins) {
  const Tensor nan = row({NAN, 1});
  const Tensor one = row({1, NAN});
  for (const char* const op : {"Max", "Min"}) {
    const std::vector<float> y = floats(call_op(op, {nan, one})[0]);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << op;
  }
}

TEST(Variadic, TiesShareTheGradient) {
  const auto two = rule_gradients("Max", {row({1, 2, 3}), row({1, 3, 2})}, row({4, 4, 4}));
  EXPECT_THAT(floats(two[0]), ElementsAre(2, 0, 4));
  EXPECT_THAT(floats(two[1]), ElementsAre(2, 4, 0));
  const auto three = rule_gradients("Min", {row({1}), row({1}), row({5})}, row({4}));
  EXPECT_THAT(floats(three[0]), ElementsAre(2));
  EXPECT_THAT(floats(three[1]), ElementsAre(2));
  EXPECT_THAT(floats(three[2]), ElementsAre(0));
}

/// As Sqrt's at 0 is: 0 times it would be NaN.
TEST(Variadic, AnInfiniteSlopeReachesTheWinnerAlone) {
  const Tensor slope = row({INFINITY, 1, 1});
  const auto both = rule_gradients("Max", {row({-2, 3, NAN}), row({0, 0, 0})}, slope);
  EXPECT_THAT(floats(both[0]), ElementsAre(0, 1, 0));
  EXPECT_THAT(floats(both[1]), ElementsAre(INFINITY, 0, 0));
}

TEST(Variadic, WantsInputs) {
  EXPECT_EQ(kind_of([] { call_op("Sum", {}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([] { call_op("Sum", {row({1}), Tensor(), row({1})}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([] { call_op("Max", {row({1, 2}), row({1, 2, 3})}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
