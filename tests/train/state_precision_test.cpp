#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/layers/nets.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

struct Trained {
  Model model;
  float first_loss = 0.0F;
  float last_loss = 0.0F;  ///< the mean of the last tenth
  std::size_t state_bytes = 0;
  std::size_t parameter_bytes = 0;
};

/// Random vectors of 16 numbers belong to the class of the largest of their first four.
struct Batch {
  Tensor x;
  Tensor labels;

  explicit Batch(std::uint64_t seed)
      : x(test::random_tensor({32, 1, 4, 4}, seed)), labels(Tensor::empty(DType::i64, {32})) {
    const auto numbers = x.values<const float>();
    for (std::size_t i = 0; i < 32; ++i) {
      const auto row = numbers.subspan(16 * i, 4);
      labels.values<std::int64_t>()[i] = std::ranges::max_element(row) - row.begin();
    }
  }
};

Trained train(const Optimizer& optimizer, StatePrecision state) {
  constexpr int kSteps = 400;
  Trained result{make_net("mlp", Shape{1, 4, 4}, 4, 1)};
  TrainStep step(result.model, {.optimizer = optimizer, .state_precision = state});
  for (int i = 0; i < kSteps; ++i) {
    const Batch batch(static_cast<std::uint64_t>(i) + 10);
    const float loss = step.run({batch.x}, batch.labels);
    if (i == 0) result.first_loss = loss;
    if (i >= kSteps * 9 / 10) result.last_loss += loss / (kSteps / 10);
  }
  result.state_bytes = step.state_bytes();
  result.parameter_bytes = step.parameter_bytes();
  return result;
}

TEST(StatePrecision, AdamReachesTheLossOfF32WithHalfTheState) {
  const Trained wide = train(Adam{.lr = 3e-3F}, StatePrecision::f32);
  const Trained stored = train(Adam{.lr = 3e-3F}, StatePrecision::bf16);
  EXPECT_EQ(wide.state_bytes, 2 * wide.parameter_bytes);
  EXPECT_EQ(stored.state_bytes, stored.parameter_bytes);
  EXPECT_EQ(stored.first_loss, wide.first_loss);
  EXPECT_LT(wide.last_loss, 0.2F * wide.first_loss);
  EXPECT_NEAR(stored.last_loss, wide.last_loss, 0.01F * wide.first_loss);
  EXPECT_NE(stored.last_loss, wide.last_loss);
}

TEST(StatePrecision, EveryOptimizerTrains) {
  const std::vector<Optimizer> optimizers{SGD{.lr = 0.05F, .momentum = 0.9F}, AdamW{.lr = 3e-3F},
                                          RMSprop{.lr = 1e-3F, .momentum = 0.5F},
                                          Adagrad{.lr = 3e-2F}};
  for (const Optimizer& optimizer : optimizers) {
    const Trained wide = train(optimizer, StatePrecision::f32);
    const Trained stored = train(optimizer, StatePrecision::bf16);
    EXPECT_EQ(2 * stored.state_bytes, wide.state_bytes) << name(optimizer);
    EXPECT_LT(wide.last_loss, 0.5F * wide.first_loss) << name(optimizer);
    EXPECT_NEAR(stored.last_loss, wide.last_loss, 0.01F * wide.first_loss) << name(optimizer);
  }
}

TEST(StatePrecision, TwoRunsGiveTheSameBits) {
  const Trained one = train(Adam{}, StatePrecision::bf16);
  const Trained two = train(Adam{}, StatePrecision::bf16);
  const std::vector<Tensor> first = test::snapshot(one.model);
  const std::vector<Tensor> second = test::snapshot(two.model);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(equal_bits(first[i], second[i]));
}

TEST(StatePrecision, CenteredRmspropIsRefused) {
  Model model = test::linear_model();
  EXPECT_THROW(TrainStep(model, {.optimizer = RMSprop{.centered = true},
                                 .state_precision = StatePrecision::bf16}),
               Error);
}

}  // namespace
}  // namespace graft
