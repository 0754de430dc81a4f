// A value that is read before it is written shows when all memory starts as NaN and becomes NaN as
// soon as it is dead: training must not notice.
#include <gtest/gtest.h>

#include "core/layers/nets.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

struct Case {
  std::string net;
  Shape image;
  Optimizer optimizer;
};

struct Trained {
  std::vector<float> losses;
  std::vector<Tensor> weights;
};

Trained train(const Case& one, bool poison) {
  Model model = make_net(one.net, one.image, 10, 3);
  TrainStep step(model, {.optimizer = one.optimizer, .clip = {.norm = 5.0F}, .poison = poison});
  std::vector<std::int64_t> dims = one.image.dims();
  dims.insert(dims.begin(), 6);
  Trained run;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    run.losses.push_back(
        step.run({test::random_tensor(Shape(dims), seed)}, test::cyclic_labels(6, 10)));
  }
  run.weights = test::snapshot(model);
  return run;
}

class Poison : public testing::TestWithParam<Case> {};

TEST_P(Poison, TrainingReadsNothingUnwritten) {
  const Trained clean = train(GetParam(), false);
  const Trained poisoned = train(GetParam(), true);
  EXPECT_EQ(clean.losses, poisoned.losses);
  for (std::size_t i = 0; i < clean.weights.size(); ++i) {
    EXPECT_TRUE(equal_bits(clean.weights[i], poisoned.weights[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Poison,
                         testing::Values(Case{"mlp", {1, 8, 8}, SGD{.lr = 0.1F, .momentum = 0.9F}},
                                         Case{"lenet", {1, 28, 28}, Adam{}},
                                         Case{"resnet20", {3, 16, 16}, AdamW{}}),
                         [](const auto& one) { return one.param.net; });

}  // namespace
}  // namespace graft
