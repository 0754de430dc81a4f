// How many kernels a training step is: each costs a card microseconds, so launches must not creep
// in.
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
  std::size_t most;
  const char* name;
};

const Optimizer kMomentum = SGD{.lr = 0.1F, .momentum = 0.9F};

class KernelsAStep : public ::testing::TestWithParam<Case> {};

TEST_P(KernelsAStep, AreNoMoreThan) {
  const Case& wanted = GetParam();
  Model model = make_net(wanted.net, wanted.image, 10, 1);
  TrainStep step(model, {.optimizer = wanted.optimizer, .device = "cuda:emulated"});
  const Shape batch{1, wanted.image[0], wanted.image[1], wanted.image[2]};
  const Tensor images = test::random_tensor(batch, 3);
  const std::size_t before = emulated::kernels_run();
  step.run({images}, test::cyclic_labels(1, 10));
  EXPECT_LE(emulated::kernels_run() - before, wanted.most);
}

INSTANTIATE_TEST_SUITE_P(
    Nets, KernelsAStep,
    ::testing::Values(Case{"mlp", {1, 28, 28}, kMomentum, 16, "mlp"},
                      Case{"lenet", {1, 28, 28}, kMomentum, 22, "lenet"},
                      Case{"lenet", {1, 28, 28}, SGD{.lr = 0.1F}, 22, "lenet_sgd"},
                      Case{"lenet", {1, 28, 28}, Adam{}, 22, "lenet_adam"},
                      Case{"resnet18", {3, 32, 32}, kMomentum, 124, "resnet18"},
                      Case{"mobilenetv2", {3, 32, 32}, kMomentum, 280, "mobilenetv2"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace graft
