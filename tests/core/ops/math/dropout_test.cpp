#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/core/ops/call_op.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_old_op;
using testing::call_op;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::floats;

Attributes settings(float ratio, std::int64_t seed, std::int64_t op_id) {
  return {{"ratio", AttributeValue(ratio)},
          {"seed", AttributeValue(seed)},
          {"op_id", AttributeValue(op_id)}};
}

std::vector<float> masked_ones(const Attributes& attributes, std::uint64_t step,
                               std::int64_t size = 100000) {
  const Tensor ones = Tensor::full(DType::f32, {size}, 1.0);
  return floats(call_internal_op("DropoutTraining", {ones}, attributes, 1, {.step = step})[0]);
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  const std::vector<float> y = masked_ones(settings(0.25F, 1, 0), 0);
  const auto kept = y.size() - static_cast<std::size_t>(std::count(y.begin(), y.end(), 0.0F));
  EXPECT_NEAR(static_cast<double>(kept), 75000.0, 5 * 137.0);  // five standard deviations
  EXPECT_EQ(std::set<float>(y.begin(), y.end()), (std::set<float>{0.0F, 1.0F / 0.75F}));
}

TEST(Dropout, SeedOpAndStepEachChangeTheMask) {
  const std::vector<float> base = masked_ones(settings(0.5F, 1, 0), 0);
  EXPECT_EQ(base, masked_ones(settings(0.5F, 1, 0), 0));
  const auto agreement = [&](const std::vector<float>& other) {
    std::int64_t same = 0;
    for (std::size_t i = 0; i < base.size(); ++i) same += base[i] == other[i] ? 1 : 0;
    return static_cast<double>(same);
  };
  for (const auto& other :
       {masked_ones(settings(0.5F, 2, 0), 0), masked_ones(settings(0.5F, 1, 1), 0),
        masked_ones(settings(0.5F, 1, 0), 1)}) {
    EXPECT_NEAR(agreement(other), 50000.0, 5 * 158.0);
  }
}

TEST(Dropout, ThreadsDoNotChangeTheMask) {
  const std::vector<float> several = masked_ones(settings(0.5F, 1, 0), 3);
  const testing::Threads one(1);
  EXPECT_EQ(several, masked_ones(settings(0.5F, 1, 0), 3));
}

TEST(Dropout, AllOrNothing) {
  EXPECT_THAT(masked_ones(settings(0.0F, 1, 0), 0, 50), Each(1.0F));
  EXPECT_THAT(masked_ones(settings(1.0F, 1, 0), 0, 50), Each(0.0F));
  EXPECT_THROW(masked_ones(settings(1.5F, 1, 0), 0, 50), Error);
}

TEST(Dropout, InferenceIsIdentity) {
  const Tensor x = Tensor::from<float>({3}, {1, 2, 3});
  const std::vector<Tensor> y = call_op("Dropout", {x, Tensor::scalar(0.9F)}, {}, 2);
  EXPECT_THAT(floats(y[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(y[1].values<bool>(), Each(true));
}

TEST(Dropout, TrainingModeGivesTheMaskItUsed) {
  const Tensor x = Tensor::full(DType::f32, {64}, 2.0);
  const bool yes[] = {true};
  const Tensor on = Tensor::from(Shape{}, std::span<const bool>(yes));
  const std::vector<Tensor> y = call_op("Dropout", {x, Tensor::scalar(0.5F), on}, {}, 2);
  const auto mask = y[1].values<bool>();
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(floats(y[0])[i], mask[i] ? 4.0F : 0.0F);
  EXPECT_TRUE(std::find(mask.begin(), mask.end(), false) != mask.end());
  EXPECT_TRUE(std::find(mask.begin(), mask.end(), true) != mask.end());
}

TEST(Dropout, RefusesBadScalars) {
  const Tensor x = Tensor::from<float>({3}, {1, 2, 3});
  EXPECT_THROW(call_op("Dropout", {x, Tensor::scalar(-0.5F)}), Error);
  EXPECT_THROW(call_op("Dropout", {x, x}), Error);
  EXPECT_THROW(call_op("Dropout", {x, Tensor::empty(DType::f32, {0})}), Error);
  EXPECT_THROW(call_op("Dropout", {x, Tensor::scalar(0.5F), Tensor::scalar(1.0F)}), Error);
}

}  // namespace
}  // namespace graft
