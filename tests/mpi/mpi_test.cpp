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

TEST(Mpi, GivesEachRankAPieceOfAll) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  const auto size = static_cast<std::size_t>(ranks->size());
  constexpr std::size_t kPiece = 5;
  const auto mine = static_cast<float>(ranks->rank());
  std::vector<float> sent = counted(size * kPiece, 1000.0F * mine);
  std::vector<float> received(sent.size());
  ranks->all_to_all(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(received)));
  for (std::size_t i = 0; i < received.size(); ++i) {
    const auto theirs = static_cast<float>(i / kPiece);
    EXPECT_EQ(received[i], 1000.0F * theirs + mine * kPiece + static_cast<float>(i % kPiece));
  }
  ranks->all_gather(std::as_writable_bytes(std::span(sent)));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i], 1000.0F * static_cast<float>(i / kPiece) + static_cast<float>(i));
  }
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

/// 200 steps with batches of the rank's own.
void train_on_own_batches(TrainStep& step, Communicator& ranks) {
  constexpr int kSteps = 200;
  const auto rank = static_cast<std::uint64_t>(ranks.rank());
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    step.run({test::random_tensor({4, 1, 6, 6}, 100 * rank + i)}, test::cyclic_labels(4, 3));
  }
  step.synchronize();
}

TEST(Mpi, RanksHoldTheSameBits) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  for (const WirePrecision wire : {WirePrecision::f32, WirePrecision::bf16}) {
    // The start is rank 0's.
    Model net = test::small_net(true, 1 + static_cast<std::uint64_t>(ranks->rank()));
    TrainStep step(net, {.optimizer = Adam{.lr = 0.01F},
                         .ema = 0.9F,
                         .clip = {.norm = 1.0F},
                         .accumulate = 3,
                         .communicator = ranks,
                         .wire_precision = wire});
    train_on_own_batches(step, *ranks);
    const TrainState state = step.state();
    expect_equal_on_all(state.weights, *ranks);
    expect_equal_on_all(state.optimizer, *ranks);
  }
}

TEST(Mpi, SharedOutStateGivesTheSameBits) {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  std::vector<std::vector<Tensor>> nets;
  std::vector<TrainState> states;
  std::vector<std::size_t> bytes;
  for (const bool shards : {false, true}) {
    Model net = test::small_net(true);
    TrainStep step(net, {.optimizer = Adam{.lr = 0.01F},
                         .clip = {.norm = 1.0F},
                         .accumulate = 3,
                         .communicator = ranks,
                         .shard_state = shards});
    train_on_own_batches(step, *ranks);
    nets.push_back(test::snapshot(net));
    bytes.push_back(step.state_bytes());
    if (ranks->rank() == 0) states.push_back(clone(step.state()));
  }
  EXPECT_LT(bytes[1], bytes[0]);
  for (std::size_t i = 0; i < nets[0].size(); ++i) {
    EXPECT_TRUE(equal_bits(nets[0][i], nets[1][i])) << i;
  }
  if (ranks->rank() > 0) return;
  ASSERT_EQ(states[0].optimizer.size(), states[1].optimizer.size());
  for (const auto& [name, tensor] : states[0].optimizer) {
    EXPECT_TRUE(equal_bits(tensor, states[1].optimizer.at(name))) << name;
  }
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
