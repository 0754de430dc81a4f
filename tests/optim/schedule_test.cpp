#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"

namespace graft {
namespace {

TEST(Schedule, Constant) {
  EXPECT_FLOAT_EQ(constant_lr().factor(0, 10), 1.0F);
  EXPECT_FLOAT_EQ(constant_lr().factor(1000, 10), 1.0F);
}

TEST(Schedule, StepAndExponential) {
  const Schedule step = step_lr(10, 0.5F);
  EXPECT_FLOAT_EQ(step.factor(9, 100), 1.0F);
  EXPECT_FLOAT_EQ(step.factor(10, 100), 0.5F);
  EXPECT_FLOAT_EQ(step.factor(29, 100), 0.25F);
  EXPECT_FLOAT_EQ(exponential_lr(0.9F).factor(3, 100), 0.729F);
}

TEST(Schedule, Cosine) {
  EXPECT_FLOAT_EQ(cosine_lr().factor(0, 100), 1.0F);
  EXPECT_FLOAT_EQ(cosine_lr().factor(25, 100), 0.85355339F);
  EXPECT_FLOAT_EQ(cosine_lr().factor(50, 100), 0.5F);
  EXPECT_FLOAT_EQ(cosine_lr(0.2F).factor(50, 100), 0.6F);
  EXPECT_FLOAT_EQ(cosine_lr(0.2F).factor(1000, 100), 0.2F);
}

/// torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=100).
TEST(Schedule, OneCycle) {
  const Schedule cycle = one_cycle_lr();
  EXPECT_FLOAT_EQ(cycle.factor(0, 100), 0.04F);
  EXPECT_FLOAT_EQ(cycle.factor(10, 100), 0.295163948F);
  EXPECT_FLOAT_EQ(cycle.factor(29, 100), 1.0F);
  EXPECT_FLOAT_EQ(cycle.factor(50, 100), 0.793893451F);
  EXPECT_NEAR(cycle.factor(99, 100), 4e-6F, 1e-9F);
}

/// The same with few steps, where the rise ends between two of them or before the first, or lasts.
TEST(Schedule, OneCycleWhereTheRiseEndsAtTheEdge) {
  Schedule cycle = one_cycle_lr();
  EXPECT_NEAR(cycle.factor(0, 2), 0.8117F, 1e-4F);
  EXPECT_NEAR(cycle.factor(0, 3), 0.9944F, 1e-4F);
  EXPECT_NEAR(cycle.factor(1, 3), 0.4626F, 1e-4F);
  cycle.rise = 0.0F;
  EXPECT_NEAR(cycle.factor(0, 10), 0.9755F, 1e-4F);
  EXPECT_NEAR(cycle.factor(1, 10), 0.9045F, 1e-4F);
  cycle.rise = 1.0F;
  EXPECT_FLOAT_EQ(cycle.factor(9, 10), 1.0F);
}

/// Short runs leave no room for the rise; the rate must still be a number.
TEST(Schedule, OneCycleOfFewSteps) {
  for (std::int64_t total = 1; total < 8; ++total) {
    for (std::int64_t step = 0; step <= total; ++step) {
      const float factor = one_cycle_lr().factor(step, total);
      EXPECT_TRUE(factor > 0.0F && factor <= 1.0F) << "step " << step << " of " << total;
    }
  }
}

TEST(Schedule, WarmUpRisesThenTheScheduleBegins) {
  const Schedule schedule = with_warmup(cosine_lr(), 4);
  EXPECT_FLOAT_EQ(schedule.factor(0, 104), 0.25F);
  EXPECT_FLOAT_EQ(schedule.factor(3, 104), 1.0F);
  EXPECT_FLOAT_EQ(schedule.factor(4, 104), 1.0F);
  EXPECT_FLOAT_EQ(schedule.factor(54, 104), 0.5F);
}

TEST(Schedule, NamesAndBadSettings) {
  for (const std::string& name : schedule_names()) {
    EXPECT_NO_THROW(schedule_from_name(name).factor(1, 10)) << name;
  }
  EXPECT_THROW(schedule_from_name("linear"), Error);
  EXPECT_THROW(step_lr(0).factor(1, 10), Error);
  EXPECT_THROW(exponential_lr(-1.0F).factor(1, 10), Error);
  EXPECT_THROW(exponential_lr(std::numeric_limits<float>::infinity()).factor(1, 10), Error);
  EXPECT_THROW(with_warmup(constant_lr(), -1).factor(1, 10), Error);
  EXPECT_THROW(constant_lr().factor(-2, 10), Error);
}

}  // namespace
}  // namespace graft
