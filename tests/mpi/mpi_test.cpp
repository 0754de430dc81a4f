// Run by mpirun on several ranks (tests/mpi/ranks_test.py): each makes all tests, and one that
// fails anywhere fails. With the argument "throw" rank 1 throws in the midst of a training.
#include "core/device/mpi_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <numeric>
#include <string_view>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "tests/train/nets.h"
#include "tests/train/parallel_nets.h"
#include "train/trainer.h"

namespace graft {
namespace {

std::vector<float> counted(std::size_t count, float from) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST(Mpi, SumsAndBroadcasts) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  const auto size = static_cast<float>(ranks->size());
  EXPECT_GT(ranks->size(), 1);
  EXPECT_EQ(ranks->local_size(), ranks->size());
  std::vector<float> values = counted(1000, static_cast<float>(ranks->rank()));
  ranks->all_reduce(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], size * static_cast<float>(i) + size * (size - 1.0F) / 2.0F);
  }
  std::array<double, 2> doubles{1.0, 1e-12};
  ranks->all_reduce(doubles);
  EXPECT_EQ(doubles[0], ranks->size());
  EXPECT_DOUBLE_EQ(doubles[1], 1e-12 * ranks->size());
  const int last = ranks->size() - 1;
  std::vector<float> theirs = counted(7, static_cast<float>(10 * ranks->rank()));
  ranks->broadcast(std::as_writable_bytes(std::span(theirs)), last);
  EXPECT_EQ(theirs, counted(7, static_cast<float>(10 * last)));
  ranks->barrier();
}

std::vector<Tensor> after_one_step(const std::shared_ptr<Communicator>& ranks) {
  Model net = test::small_net(false);
  TrainStep step(net, {.optimizer = SGD{.lr = 0.1F}, .communicator = ranks});
  const Batch batch = test::part(0, or_alone(ranks));
  step.run(batch.inputs, batch.target);
  return test::snapshot(net);
}

TEST(Mpi, TheFirstStepIsThatOfTheJointBatch) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  test::expect_near(after_one_step(ranks), after_one_step(nullptr), 1e-6);
}

void expect_equal_on_all(const std::map<std::string, Tensor>& tensors, Communicator& ranks) {
  for (const auto& [name, tensor] : tensors) {
    const Tensor first = tensor.clone();
    ranks.broadcast({static_cast<std::byte*>(first.data()), first.bytes()}, 0);
    EXPECT_TRUE(equal_bits(first, tensor)) << name << " on rank " << ranks.rank();
  }
}

TEST(Mpi, RanksHoldTheSameBits) {
  constexpr int kSteps = 200;
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  const auto rank = static_cast<std::uint64_t>(ranks->rank());
  Model net = test::small_net(true, 1 + rank);  // the start is rank 0's
  TrainStep step(net, {.optimizer = Adam{.lr = 0.01F},
                       .ema = 0.9F,
                       .clip = {.norm = 1.0F},
                       .accumulate = 3,
                       .communicator = ranks});
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    step.run({test::random_tensor({4, 1, 6, 6}, 100 * rank + i)}, test::cyclic_labels(4, 3));
  }
  step.synchronize();
  const TrainState state = step.state();
  expect_equal_on_all(state.weights, *ranks);
  expect_equal_on_all(state.optimizer, *ranks);
}

TEST(Mpi, FitsDataWhoseLastBatchIsOdd) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  const Shard shard{.index = ranks->rank(), .count = ranks->size()};
  Model net = test::small_net(true);
  Trainer trainer(net, {.communicator = ranks});
  DataLoader loader(test::images(23), {.batch = 8, .shuffle = true, .shard = shard});
  DataLoader held_back(test::images(23), {.batch = 8, .shard = shard, .equal_shards = false});
  const auto reports = trainer.fit(loader, {.epochs = 2, .validation = &held_back});
  EXPECT_EQ(reports.back().samples, 23 - 7 % ranks->size());
  EXPECT_EQ(reports.back().validation->samples, 23);
  expect_equal_on_all(trainer.train_step().state().weights, *ranks);
}

int train_and_throw() try {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  Model net = test::small_net(false);
  Trainer trainer(net, {.communicator = ranks});
  for (int i = 0;; ++i) {
    if (ranks->rank() == 1 && i == 5) fail(ErrorKind::io, "rank 1 cannot read");
    trainer.step(test::part(i, *ranks));
  }
} catch (const Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}

}  // namespace
}  // namespace graft

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  graft::set_thread_count(1);
  if (argc > 1 && std::string_view(argv[1]) == "throw") return graft::train_and_throw();
  const auto kept = graft::mpi_communicator();
  return RUN_ALL_TESTS();
}
