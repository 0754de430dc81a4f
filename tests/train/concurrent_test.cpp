// Threads of a program that each train a model of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/layers/nets.h"
#include "data/loader.h"
#include "data/tensor_dataset.h"
#include "tests/core/threads.h"
#include "train/trainer.h"

namespace graft {
namespace {

/// All weights after two epochs.
std::vector<Tensor> trained(const std::shared_ptr<Dataset>& data, std::uint64_t seed) {
  Model model = make_net("lenet", Shape{1, 28, 28}, 3, seed);
  DataLoader loader(data, {.batch = 4, .shuffle = true});
  Trainer trainer(model, {.optimizer = Adam{.lr = 0.01F}});
  trainer.fit(loader, {.epochs = 2});
  std::vector<Tensor> weights;
  for (const Value* value : model.graph().initializers()) weights.push_back(value->initializer());
  return weights;
}

TEST(Concurrent, TrainersOfOneDatasetDoNotDisturbOneAnother) {
  const testing::Threads threads(2);
  const auto data = tensor_dataset({{"x", Tensor::full(DType::f32, {10, 1, 28, 28}, 0.5)}},
                                   {"y", Tensor::full(DType::i64, {10}, 1)}, 3);
  const std::vector<Tensor> alone[] = {trained(data, 1), trained(data, 2)};
  std::vector<Tensor> together[2];
  std::thread other([&] { together[1] = trained(data, 2); });
  together[0] = trained(data, 1);
  other.join();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::ranges::equal(together[i], alone[i], equal_bits));
  EXPECT_FALSE(std::ranges::equal(alone[0], alone[1], equal_bits));
}

}  // namespace
}  // namespace graft
