#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

// Four channels of one pixel: two groups of mean 2 and 6, both of variance 1.
Tensor four() {
  return Tensor::from<float>({1, 4, 1}, {1, 3, 7, 5});
}

const Attributes kTwoGroups{{"num_groups", 2}, {"epsilon", AttributeValue(0.0F)}};

/// Numbers of f32 round 10^7 are 1 apart: the mean lies between two of them.
TEST(GroupNorm, AMeanOfTenMillionCostsNoDigits) {
  const auto normalized = [](DType dtype) {
    std::vector<double> numbers;
    for (int i = 0; i < 64; ++i) numbers.push_back(1e7 + i * i % 13);
    const Tensor x = Tensor::from<double>({1, 2, 32}, numbers).cast(dtype);
    const Tensor ones = Tensor::full(dtype, {2}, 1);
    return to_double(call_op("GroupNormalization", {x, ones, ones}, {{"num_groups", 1}})[0]);
  };
  EXPECT_THAT(normalized(DType::f32),
              ::testing::Pointwise(::testing::DoubleNear(1e-5), normalized(DType::f64)));
}

TEST(GroupNorm, ScalesEachChannel) {
  const Tensor scale = Tensor::from<float>({4}, {1, 2, 3, 4});
  const Tensor bias = Tensor::from<float>({4}, {0, 0, 0, 10});
  EXPECT_THAT(floats(call_op("GroupNormalization", {four(), scale, bias}, kTwoGroups)[0]),
              ElementsAre(-1, 2, 3, 6));
}

TEST(GroupNorm, OlderFormScalesEachGroup) {
  const Tensor scale = Tensor::from<float>({2}, {1, 10});
  const Tensor bias = Tensor::from<float>({2}, {0, 100});
  EXPECT_THAT(floats(call_old_op("GroupNormalization", 18, {four(), scale, bias}, kTwoGroups)),
              ElementsAre(-1, 1, 110, 90));
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivideTheChannels) {
  const Tensor ones = Tensor::full(DType::f32, {4}, 1);
  const auto call = [&](int groups) {
    return error_of([&] {
             call_op("GroupNormalization", {four(), ones, ones}, {{"num_groups", groups}});
           })
        .kind();
  };
  EXPECT_EQ(call(3), ErrorKind::shape);
  EXPECT_EQ(call(0), ErrorKind::model);
}

TEST(InstanceNorm, NormalizesEachChannelAlone) {
  const Tensor x = Tensor::from<float>({1, 2, 2}, {1, 3, 50, 30});
  const Tensor ones = Tensor::full(DType::f32, {2}, 1);
  const Tensor bias = Tensor::from<float>({2}, {0, 5});
  EXPECT_THAT(floats(call_op("InstanceNormalization", {x, ones, bias},
                             {{"epsilon", AttributeValue(0.0F)}})[0]),
              ElementsAre(-1, 1, 6, 4));
}

}  // namespace
}  // namespace graft
