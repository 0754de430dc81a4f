// What training on the card reads and asks for: nothing that was not written, and no memory once it
// goes.
#include <gtest/gtest.h>

#include "core/device/cuda/emulated/emulator.h"
#include "core/layers/nets.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

struct Case {
  const char* net;
  Shape image;
  Optimizer optimizer;
};

struct Trained {
  std::vector<float> losses;
  std::vector<Tensor> weights;
};

TrainOptions options_of(const Case& one, bool poison = false) {
  TrainOptions options{.optimizer = one.optimizer, .clip = {.norm = 5.0F}};
  options.poison = poison;
  options.device = "cuda:emulated";
  return options;
}

Tensor images_of(const Case& one, std::uint64_t seed) {
  std::vector<std::int64_t> dims = one.image.dims();
  dims.insert(dims.begin(), 3);
  return test::random_tensor(Shape(dims), seed);
}

Trained train(const Case& one, bool poison) {
  Model model = make_net(one.net, one.image, 3, 3);
  TrainStep step(model, options_of(one, poison));
  Trained run;
  for (const std::uint64_t seed : {1, 2, 3}) {
    run.losses.push_back(step.run({images_of(one, seed)}, test::cyclic_labels(3, 3)));
  }
  run.weights = test::snapshot(model);
  return run;
}

class MemoryOnCard : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryOnCard, TrainingReadsNothingUnwritten) {
  const Trained clean = train(GetParam(), false);
  const Trained poisoned = train(GetParam(), true);
  EXPECT_EQ(clean.losses, poisoned.losses);
  for (std::size_t i = 0; i < clean.weights.size(); ++i) {
    EXPECT_TRUE(equal_bits(clean.weights[i], poisoned.weights[i])) << i;
  }
}

/// The first step is plain and the second recorded.
TEST_P(MemoryOnCard, IsAskedForInTheFirstTwoStepsAlone) {
  Model model = make_net(GetParam().net, GetParam().image, 3, 3);
  TrainStep step(model, options_of(GetParam()));
  const Tensor images = images_of(GetParam(), 1);
  const Tensor labels = test::cyclic_labels(3, 3);
  step.run({images}, labels);
  step.run({images}, labels);
  const std::size_t before = emulated::allocations();
  EXPECT_GT(before, 0U);
  for (int i = 0; i < 3; ++i) step.run({images}, labels);
  EXPECT_EQ(emulated::allocations(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Nets, MemoryOnCard,
    ::testing::Values(Case{"mlp", {1, 8, 8}, SGD{.lr = 0.1F, .momentum = 0.9F}},
                      Case{"lenet", {1, 16, 16}, Adam{}}, Case{"resnet20", {3, 4, 4}, AdamW{}}),
    [](const auto& one) { return std::string(one.param.net); });

}  // namespace
}  // namespace graft
