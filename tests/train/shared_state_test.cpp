// What ranks share out, store together and go on from. They are threads here; tests/mpi has
// processes.
#include "train/shared_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/ops/builder.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "tests/train/parallel_nets.h"
#include "tests/train/thread_ranks.h"
#include "train/checkpoint.h"
#include "train/data_parallel.h"
#include "train/trainer.h"

namespace graft {
namespace {

using test::expect_near;
using test::images;
using test::is_rank_0s;
using test::part;
using test::run_ranks;
using testing::expect_error;
using Ranks = std::shared_ptr<Communicator>;

TEST(SharedState, RefusesWhatDoesNotGoTogether) {
  Model net = test::small_net(false);
  expect_error(ErrorKind::argument, "send no gradients",
               [&] { TrainStep(net, {.sync_every = 2, .wire_precision = WirePrecision::bf16}); });
  expect_error(ErrorKind::argument, "keep all state",
               [&] { TrainStep(net, {.sync_every = 2, .shard_state = true}); });
  expect_error(ErrorKind::unsupported, "averages of weights",
               [&] { TrainStep(net, {.ema = 0.9F, .shard_state = true}); });
}

TEST(SharedState, EachRankKeepsAShareOfTheState) {
  Model lone_net = test::small_net(false);
  TrainStep lone(lone_net, {.optimizer = Adam{.lr = 0.01F}});
  for (int i = 0; i < 3; ++i) {
    const Batch batch = part(i, alone());
    lone.run(batch.inputs, batch.target);
  }
  for (const int size : {2, 4, 8}) {  // there are four parameters
    std::vector<std::size_t> bytes(static_cast<std::size_t>(size));
    run_ranks(size, [&](const Ranks& ranks) {
      Model net = test::small_net(false);
      TrainStep step(net,
                     {.optimizer = Adam{.lr = 0.01F}, .communicator = ranks, .shard_state = true});
      for (int i = 0; i < 3; ++i) {
        const Batch batch = part(i, *ranks);
        step.run(batch.inputs, batch.target);
      }
      bytes[static_cast<std::size_t>(ranks->rank())] = step.state_bytes();
      for (const Tensor& tensor : test::snapshot(net)) EXPECT_TRUE(is_rank_0s(tensor, *ranks));
      expect_error(ErrorKind::argument, "gather_state()", [&] { step.state(); });
      step.gather_state();
      if (ranks->rank() > 0) {
        return expect_error(ErrorKind::argument, "shard_state", [&] { step.state(); });
      }
      const TrainState state = step.state();
      const TrainState wanted = lone.state();
      ASSERT_EQ(state.optimizer.size(), wanted.optimizer.size());
      for (const auto& [name, tensor] : wanted.optimizer) {
        expect_near({state.optimizer.at(name)}, {tensor}, 1e-6);
      }
    });
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), lone.state_bytes());
    EXPECT_LT(std::ranges::max(bytes), lone.state_bytes());
  }
}

/// A net with BatchNormalization all of whose numbers have 16 bits.
Model half_net() {
  Model net;
  net.set_opset("", 17);
  Graph& graph = net.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::bf16, SymShape{4, 2, 3, 3}}));
  const auto add = [&](const char* name, double number) {
    return builder.expr(graph.add_initializer(name, Tensor::full(DType::bf16, Shape{2}, number)));
  };
  const Expr norm = call(
      "BatchNormalization",
      {x, add("scale", 1), add("bias", 0), add("bn.running_mean", 0), add("bn.running_var", 1)});
  graph.add_output(call("Flatten", {norm}).value());
  return net;
}

TEST(SharedState, StatisticsOf16BitsMeetToo) {
  for (const bool is_asked : {false, true}) {
    run_ranks(2, [&](const Ranks& ranks) {
      Model net = half_net();
      TrainStep step(net, {.communicator = ranks, .sync_bn = is_asked});
      const auto rank = static_cast<std::uint64_t>(ranks->rank());
      const Tensor x = test::random_tensor({4, 2, 3, 3}, 1 + rank).cast(DType::bf16);
      step.run({x}, test::cyclic_labels(4, 3));
      if (!is_asked) step.synchronize();
      const TrainState state = step.state();
      for (const char* name : {"bn.running_mean.master", "bn.running_var.master"}) {
        EXPECT_TRUE(is_rank_0s(state.optimizer.at(name), *ranks)) << name;
      }
      EXPECT_TRUE(is_rank_0s(state.weights.at("bn.running_mean"), *ranks));
    });
  }
}

TEST(SharedState, AnotherNumberOfRanksGoesOn) {
  const std::vector<Tensor> wanted = [] {
    Model net = test::small_net(false);
    Trainer trainer(net, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}});
    DataLoader loader(images(48), {.batch = 8, .shuffle = true, .seed = 3});
    trainer.fit(loader, {.epochs = 3});
    return test::snapshot(net);
  }();
  const testing::TempFolder folder;
  const auto file = folder.path() / "last.safetensors";
  const auto go_on = [&](const Ranks& ranks, bool breaks_off, bool shards) {
    const Shard shard{.index = ranks->rank(), .count = ranks->size()};
    Model net = test::small_net(false);
    Trainer trainer(net, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F},
                          .communicator = ranks,
                          .shard_state = shards});
    DataLoader loader(images(48), {.batch = 8, .shuffle = true, .seed = 3, .shard = shard});
    std::vector<std::shared_ptr<Callback>> callbacks;
    int steps = 0;
    if (breaks_off && ranks->rank() == 0) {
      callbacks.push_back(std::make_shared<Checkpoint>(folder.path()));
    }
    trainer.fit(loader, {.epochs = 3,
                         .callbacks = callbacks,
                         .goes_on = [&] { return !breaks_off || ++steps < 9; },
                         .resume = breaks_off ? "" : file});
    return test::snapshot(net);
  };
  for (const bool shards : {false, true}) {
    run_ranks(2, [&](const Ranks& ranks) { go_on(ranks, true, shards); });
    for (const int size : {1, 4}) {
      run_ranks(size, [&](const Ranks& ranks) {
        expect_near(go_on(ranks, false, shards), wanted, 2e-6);
        expect_near(go_on(ranks, false, !shards), wanted, 2e-6);
      });
    }
  }
}

// Ranks go on with what each has; what is stored is the mean.
TEST(SharedState, GatheredStateIsWhatRanksWouldMeetAt) {
  for (const int every : {1, 2}) {
    run_ranks(2, [&](const Ranks& ranks) {
      Model net = test::small_net(true);
      TrainStep step(net, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F},
                           .communicator = ranks,
                           .sync_every = every});
      const Batch batch = part(0, *ranks);
      step.run(batch.inputs, batch.target);
      const TrainState before = clone(step.state());
      step.gather_state();
      const TrainState gathered = clone(step.state());
      for (const Value* value : net.graph().initializers()) {
        const auto mine = before.weights.find(value->name());
        if (mine == before.weights.end()) continue;
        EXPECT_TRUE(equal_bits(value->initializer(), mine->second)) << value->name();
      }
      step.synchronize();
      const TrainState met = step.state();
      if (ranks->rank() > 0) return;
      for (const auto& [name, tensor] : met.weights) {
        EXPECT_TRUE(equal_bits(gathered.weights.at(name), tensor)) << name;
        const bool is_own = name.starts_with("bn.running") || every == 2;
        if (name == "conv.bias") continue;  // BatchNormalization leaves it no gradient
        EXPECT_EQ(equal_bits(before.weights.at(name), tensor), !is_own) << name;
      }
      for (const auto& [name, tensor] : met.optimizer) {
        EXPECT_TRUE(equal_bits(gathered.optimizer.at(name), tensor)) << name;
      }
    });
  }
}

/// Asks once for a save, and keeps what is saved.
class Saver : public Callback {
 public:
  explicit Saver(bool asks) : asks_(asks) {}
  void on_step(Run& run, const Progress& progress) override {
    if (asks_ && progress.batch == 2) run.saves = true;
  }
  void on_save(Run& run) override {
    ++saves;
    if (run.position.batch == 2) state = clone(run.trainer.state(run).step);
  }

  int saves = 0;
  TrainState state;

 private:
  bool asks_;
};

TEST(SharedState, WhatThereWasBeforeTrainingCanBeStored) {
  const testing::TempFolder folder;
  run_ranks(2, [&](const Ranks& ranks) {
    Model net = test::small_net(false);
    Trainer trainer(net, {.communicator = ranks, .shard_state = true});
    const Shard shard{.index = ranks->rank(), .count = ranks->size()};
    DataLoader loader(images(16), {.batch = 8, .shard = shard});
    DataLoader held_back(images(16), {.batch = 8, .shard = shard, .equal_shards = false});
    std::vector<std::shared_ptr<Callback>> callbacks;
    if (ranks->rank() == 0) callbacks.push_back(std::make_shared<Checkpoint>(folder.path()));
    trainer.fit(
        loader,
        {.epochs = 1, .validation = &held_back, .callbacks = callbacks, .measure_first = true});
  });
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "last.safetensors"));
}

TEST(SharedState, ASaveThatOneRankWantsIsOfAllRanks) {
  run_ranks(2, [](const Ranks& ranks) {
    const Shard shard{.index = ranks->rank(), .count = ranks->size()};
    Model net = test::small_net(true);
    Trainer trainer(net, {.communicator = ranks});
    DataLoader loader(images(48), {.batch = 16, .shard = shard});
    const auto saver = std::make_shared<Saver>(ranks->rank() == 1);
    std::optional<Tensor> own;
    const auto on_step = [&](const Progress& step) {
      const Value* const mean = net.graph().find("bn.running_mean");
      if (step.batch == 2) own = mean->initializer().clone();
      return true;
    };
    trainer.fit(loader, {.epochs = 1, .on_step = on_step, .callbacks = {saver}});
    EXPECT_EQ(saver->saves, 1);
    const Tensor others = own->clone();
    average({others}, *ranks);
    const Tensor& saved = saver->state.weights.at("bn.running_mean");
    EXPECT_TRUE(equal_bits(saved, ranks->rank() == 0 ? others : *own));
    EXPECT_FALSE(equal_bits(others, *own));
  });
}

}  // namespace
}  // namespace graft
