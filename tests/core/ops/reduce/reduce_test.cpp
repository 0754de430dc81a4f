#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/core/ops/call_op.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor one_to_six() {
  return Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
}
Tensor axes(std::initializer_list<std::int64_t> list) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(list.size())}, list);
}

TEST(Reduce, SumsOverChosenAxes) {
  EXPECT_THAT(floats(call_op("ReduceSum", {one_to_six(), axes({0})})[0]), ElementsAre(5, 7, 9));
  const Tensor rows = call_op("ReduceSum", {one_to_six(), axes({-1})}, {{"keepdims", 0}})[0];
  EXPECT_EQ(rows.shape(), Shape({2}));
  EXPECT_THAT(floats(rows), ElementsAre(6, 15));
  EXPECT_EQ(call_op("ReduceSum", {one_to_six()})[0].shape(), Shape({1, 1}));
}

TEST(Reduce, EveryOperation) {
  const Tensor x = Tensor::from<float>({1, 3}, {-2, 3, 4});
  const auto value = [&](const char* op) { return floats(call_op(op, {x, axes({1})})[0])[0]; };
  EXPECT_FLOAT_EQ(value("ReduceSum"), 5);
  EXPECT_FLOAT_EQ(value("ReduceMean"), 5.0F / 3);
  EXPECT_FLOAT_EQ(value("ReduceMax"), 4);
  EXPECT_FLOAT_EQ(value("ReduceMin"), -2);
  EXPECT_FLOAT_EQ(value("ReduceProd"), -24);
  EXPECT_FLOAT_EQ(value("ReduceL1"), 9);
  EXPECT_FLOAT_EQ(value("ReduceL2"), std::sqrt(29.0F));
  EXPECT_FLOAT_EQ(value("ReduceSumSquare"), 29);
  EXPECT_FLOAT_EQ(value("ReduceLogSum"), std::log(5.0F));
  EXPECT_FLOAT_EQ(value("ReduceLogSumExp"),
                  std::log(std::exp(-2.0F) + std::exp(3.0F) + std::exp(4.0F)));
}

TEST(Reduce, OverNothingGivesTheNeutralElement) {
  const Tensor x = Tensor::empty(DType::f32, {2, 0});
  const auto value = [&](const char* op) { return floats(call_op(op, {x, axes({1})})[0]); };
  EXPECT_THAT(value("ReduceSum"), ElementsAre(0, 0));
  EXPECT_THAT(value("ReduceProd"), ElementsAre(1, 1));
  EXPECT_THAT(value("ReduceMax"), ElementsAre(-kInfinity, -kInfinity));
  EXPECT_THAT(value("ReduceMin"), ElementsAre(kInfinity, kInfinity));
  EXPECT_THAT(value("ReduceLogSum"), ElementsAre(-kInfinity, -kInfinity));
  EXPECT_THAT(value("ReduceLogSumExp"), ElementsAre(-kInfinity, -kInfinity));
  EXPECT_THAT(value("ReduceL2"), ElementsAre(0, 0));
  EXPECT_TRUE(std::isnan(value("ReduceMean")[0]));
  const Tensor integers = Tensor::empty(DType::i32, {0});
  EXPECT_EQ(call_op("ReduceMax", {integers})[0].values<std::int32_t>()[0],
            std::numeric_limits<std::int32_t>::lowest());
}

TEST(Reduce, NoopStillAppliesTheElementwisePart) {
  const Attributes noop{{"noop_with_empty_axes", 1}};
  EXPECT_THAT(floats(call_op("ReduceSum", {one_to_six()}, noop)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(floats(call_op("ReduceSumSquare", {one_to_six()}, noop)[0]),
              ElementsAre(1, 4, 9, 16, 25, 36));
}

TEST(Reduce, IntegersWrapAndBoolsAreOrdered) {
  const Tensor big = Tensor::from<std::int32_t>({2}, {2147483647, 1});
  EXPECT_EQ(call_op("ReduceSum", {big})[0].values<std::int32_t>()[0], -2147483647 - 1);
  const Tensor mixed = Tensor::from<std::int64_t>({3}, {-7, 2, 1});
  EXPECT_EQ(call_op("ReduceMean", {mixed})[0].values<std::int64_t>()[0], -1);
  EXPECT_EQ(call_op("ReduceL1", {mixed})[0].values<std::int64_t>()[0], 10);
  const Tensor small = Tensor::from<std::int8_t>({2, 2}, {-7, 2, 1, -128});
  EXPECT_THAT(call_op("ReduceMax", {small, axes({1})})[0].values<std::int8_t>(), ElementsAre(2, 1));
  const bool bits[] = {true, false, false, false};
  const Tensor flags = Tensor::from({2, 2}, std::span<const bool>(bits));
  EXPECT_THAT(call_op("ReduceMax", {flags, axes({1})})[0].values<bool>(), ElementsAre(true, false));
  EXPECT_THAT(call_op("ReduceMin", {flags, axes({1})})[0].values<bool>(),
              ElementsAre(false, false));
}

TEST(Reduce, NanWinsAndInfinityIsKept) {
  for (const std::int64_t columns : {1, 70}) {
    std::vector<float> values(static_cast<std::size_t>(3 * columns), 1.0F);
    values[static_cast<std::size_t>(columns)] = std::nanf("");
    const Tensor x = Tensor::from({3, columns}, values);
    EXPECT_TRUE(std::isnan(floats(call_op("ReduceMax", {x, axes({0})})[0])[0]));
    EXPECT_TRUE(std::isnan(floats(call_op("ReduceMin", {x, axes({0})})[0])[0]));
  }
  const Tensor x = Tensor::from<float>({3, 2}, {1000, 1000, kInfinity, 0, -kInfinity, -kInfinity});
  const std::vector<float> y = floats(call_op("ReduceLogSumExp", {x, axes({1})})[0]);
  EXPECT_FLOAT_EQ(y[0], 1000.0F + std::log(2.0F));
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_EQ(y[2], -kInfinity);
}

/// 0.1 added ten million times in f32 one after the other gives 1087937.
TEST(Reduce, LongSumsKeepTheirPrecision) {
  const Tensor x = Tensor::full(DType::f32, {10000000}, 0.1);
  EXPECT_NEAR(floats(call_op("ReduceSum", {x})[0])[0], 1000000.0F, 0.3F);
  const Tensor columns = x.reshaped({5000000, 2});
  EXPECT_NEAR(floats(call_op("ReduceSum", {columns, axes({0})})[0])[1], 500000.0F, 0.15F);
}

TEST(Reduce, TheNumberOfThreadsDoesNotChangeBits) {
  std::vector<float> values(300007);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const Tensor x = Tensor::from({300007}, values);
  const Tensor two = call_op("ReduceSum", {x})[0];
  const testing::Threads single(1);
  const Tensor one = call_op("ReduceSum", {x})[0];
  EXPECT_TRUE(equal_bits(one, two));
}

TEST(Reduce, RefusesBadAxes) {
  EXPECT_THROW(call_op("ReduceSum", {one_to_six(), axes({2})}), Error);
  EXPECT_THROW(call_op("ReduceSum", {one_to_six(), axes({0, -2})}), Error);
  EXPECT_THROW(call_op("ReduceSum", {Tensor::scalar(1.0F), axes({0})}), Error);
  EXPECT_THROW(call_op("ReduceSum", {one_to_six(), Tensor::from<float>({1}, {0})}), Error);
}

TEST(Reduce, AxesAttributeBecomesAnInput) {
  for (const char* op : {"ReduceSum", "ReduceMean"}) {
    EXPECT_THAT(floats(testing::call_old_op(op, 11, {one_to_six()},
                                            {{"axes", std::vector<std::int64_t>{-1}}})),
                ElementsAre(op[6] == 'S' ? 6 : 2, op[6] == 'S' ? 15 : 5));
  }
}

}  // namespace
}  // namespace graft
