// Ranks train as one process would with the joint batch, and hold the same bits. They are threads
// here; tests/mpi has processes.
#include "train/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "core/runtime/plan.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "tests/train/parallel_nets.h"
#include "tests/train/thread_ranks.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace graft {
namespace {

using test::expect_near;
using test::images;
using test::is_rank_0s;
using test::part;
using test::run_ranks;
using testing::expect_error;
using ::testing::HasSubstr;
using Ranks = std::shared_ptr<Communicator>;

std::vector<Tensor> trained(const TrainOptions& options, int steps, Communicator& ranks) {
  Model net = test::small_net(false);
  TrainStep step(net, options);
  for (int i = 0; i < steps; ++i) {
    const Batch batch = part(i, ranks);
    step.run(batch.inputs, batch.target);
  }
  return test::snapshot(net);
}

/// What training changes of the net, and what is kept beside it; they share the elements.
std::vector<Tensor> parts_of(const Model& net, const TrainState& state) {
  std::vector<Tensor> all;
  for (const Value* value : net.graph().initializers()) all.push_back(value->initializer());
  for (const auto& [name, tensor] : state.optimizer) all.push_back(tensor);
  return all;
}

// By broadcasts, which is what a communicator does that has nothing better.
TEST(DataParallel, RanksGiveEachOtherPieces) {
  run_ranks(3, [](const Ranks& ranks) {
    const auto rank = static_cast<float>(ranks->rank());
    std::vector<float> sent{rank, rank + 10.0F, rank + 20.0F};
    std::vector<float> received(3);
    ranks->all_to_all(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(received)));
    EXPECT_THAT(received, ::testing::ElementsAre(10 * rank, 10 * rank + 1, 10 * rank + 2));
    ranks->all_gather(std::as_writable_bytes(std::span(sent)));
    EXPECT_THAT(sent, ::testing::ElementsAre(0, 11, 22));
  });
}

struct Setting {
  const char* name;
  TrainOptions options;
  int steps;
};

class JointBatch : public ::testing::TestWithParam<Setting> {};

TEST_P(JointBatch, TrainsAsOneProcess) {
  const std::vector<Tensor> wanted = trained(GetParam().options, GetParam().steps, alone());
  for (const int size : {2, 4}) {
    run_ranks(size, [&](const Ranks& ranks) {
      TrainOptions options = GetParam().options;
      options.communicator = ranks;
      expect_near(trained(options, GetParam().steps, *ranks), wanted, 1e-6);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, JointBatch,
    ::testing::Values(
        Setting{"sgd", {.optimizer = SGD{.lr = 0.1F}}, 1},
        Setting{"momentum", {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}, .ema = 0.9F}, 4},
        Setting{
            "clipped", {.optimizer = SGD{.lr = 0.1F}, .clip = {.norm = 0.05F, .value = 0.02F}}, 2},
        Setting{"accumulated", {.optimizer = SGD{.lr = 0.1F}, .accumulate = 3}, 6},
        Setting{
            "sharded", {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}, .shard_state = true}, 4},
        Setting{"sharded_and_accumulated",
                {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F},
                 .clip = {.norm = 0.05F},
                 .accumulate = 3,
                 .shard_state = true},
                6}),
    [](const auto& setting) { return setting.param.name; });

// Steps of lone processes, each on a rank's part, say what ranks have before they meet.
TEST(DataParallel, RanksThatUpdateByThemselvesMeetAgain) {
  run_ranks(2, [](const Ranks& ranks) {
    TrainOptions options{.optimizer = SGD{.lr = 0.1F, .momentum = 0.9F}, .ema = 0.9F};
    Model lone_net = test::small_net(false);
    TrainStep lone(lone_net, options);
    options.communicator = ranks;
    options.sync_every = 2;
    Model net = test::small_net(false);
    TrainStep step(net, options);
    for (int i = 0; i < 3; ++i) {
      if (i == 2) average(parts_of(lone_net, lone.state()), *ranks);  // behind two updates
      expect_near(test::snapshot(net), test::snapshot(lone_net), i == 2 ? 1e-6 : 0.0);
      const Batch batch = part(i, *ranks);
      step.run(batch.inputs, batch.target);
      lone.run(batch.inputs, batch.target);
    }
    expect_near(test::snapshot(net), test::snapshot(lone_net), 1e-6);
    const Tensor weight = net.graph().find("head.weight")->initializer();
    EXPECT_EQ(is_rank_0s(weight, *ranks), ranks->rank() == 0);
    step.synchronize();
    for (const auto& [name, tensor] : step.state().optimizer) {
      EXPECT_TRUE(is_rank_0s(tensor, *ranks)) << name;
    }
    EXPECT_TRUE(is_rank_0s(weight, *ranks));
  });
}

TEST(DataParallel, FollowsStatisticsWithEachUpdateIfAsked) {
  for (const bool is_asked : {false, true}) {
    run_ranks(2, [&](const Ranks& ranks) {
      Model net = test::small_net(true);
      TrainStep step(net,
                     {.optimizer = SGD{.lr = 0.1F}, .communicator = ranks, .sync_bn = is_asked});
      const Batch batch = part(0, *ranks);
      step.run(batch.inputs, batch.target);
      const bool is_same = is_rank_0s(net.graph().find("bn.running_mean")->initializer(), *ranks);
      EXPECT_EQ(is_same, is_asked || ranks->rank() == 0);
    });
  }
}

TEST(DataParallel, RefusesOwnUpdatesOf16Bits) {
  run_ranks(2, [](const Ranks& ranks) {
    Model net;
    net.set_opset("", 17);
    Builder builder(net.graph());
    const Expr x = builder.expr(net.graph().add_input("x", {DType::bf16, SymShape{4, 2}}));
    const Tensor weight = Tensor::zeros(DType::bf16, Shape{2, 3});
    const Expr w = builder.expr(net.graph().add_initializer("w", weight));
    net.graph().add_output(matmul(x, w).value());
    for (const TrainOptions& options : {TrainOptions{.communicator = ranks, .sync_every = 2},
                                        TrainOptions{.communicator = ranks, .shard_state = true}}) {
      expect_error(ErrorKind::unsupported, "'w' is bf16[2,3]", [&] { TrainStep(net, options); });
    }
  });
  Model net = test::small_net(false);
  expect_error(ErrorKind::argument, "sync_every is 0", [&] { TrainStep(net, {.sync_every = 0}); });
}

TEST(DataParallel, GradientsMayTravelInBf16) {
  run_ranks(4, [&](const Ranks& ranks) {
    Model net = test::small_net(false);
    TrainStep step(
        net,
        {.optimizer = std::nullopt, .communicator = ranks, .wire_precision = WirePrecision::bf16});
    const Batch batch = part(0, *ranks);
    step.run(batch.inputs, batch.target);
    EXPECT_THAT(step.describe(), HasSubstr("wire = "));
    Model other = test::small_net(false);
    TrainStep wide(other, {.optimizer = std::nullopt, .communicator = ranks});
    wide.run(batch.inputs, batch.target);
    const std::map<std::string, Tensor> wanted = wide.gradients();
    for (const auto& [name, gradient] : step.gradients()) {
      EXPECT_TRUE(is_rank_0s(gradient, *ranks)) << name;
      EXPECT_TRUE(equal_bits(gradient, gradient.cast(DType::bf16).cast(DType::f32))) << name;
      EXPECT_FALSE(equal_bits(gradient, wanted.at(name))) << name;
      const auto found = gradient.values<const float>();
      const auto exact = wanted.at(name).values<const float>();
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], exact[i], 2e-3);
    }
  });
}

TEST(DataParallel, LargeGradientsTravelInBf16InSlices) {
  run_ranks(3, [&](const Ranks& ranks) {
    Graph graph;
    Builder builder(graph);
    constexpr std::int64_t kSize = (std::int64_t{1} << 22) + 5;
    const Expr before = builder.expr(graph.add_input("before", {DType::f32, SymShape(Shape{})}));
    const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{kSize})}));
    graph.add_output(call_internal("AllReduce", {before, x},
                                   {{"communicator", AttributeValue(ranks->id())},
                                    {"wire", static_cast<int>(DType::bf16)}})
                         .value());
    Plan plan(graph.clone(), {});
    Tensor values = Tensor::empty(DType::f32, Shape{kSize});
    const auto numbers = values.values<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(i % 64) + 3.0F * static_cast<float>(ranks->rank());
    }
    plan.run(std::vector{Tensor::scalar(0.0F), values});
    const auto means = plan.output(0).values<const float>();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < means.size(); ++i) {
      wrong += means[i] == static_cast<float>(i % 64) + 3.0F ? 0U : 1U;
    }
    EXPECT_EQ(wrong, 0U);
  });
}

TEST(DataParallel, AStepWithoutAnOptimizerGivesTheMeanOfGradients) {
  Model lone = test::small_net(false);
  TrainStep step(lone, {.optimizer = std::nullopt});
  const Batch all = part(0, alone());
  step.run(all.inputs, all.target);
  const std::map<std::string, Tensor> wanted = step.gradients();
  run_ranks(2, [&](const Ranks& ranks) {
    Model net = test::small_net(false);
    TrainStep mine(net, {.optimizer = std::nullopt, .communicator = ranks});
    const Batch batch = part(0, *ranks);
    mine.run(batch.inputs, batch.target);
    for (const auto& [name, gradient] : mine.gradients()) {
      expect_near({gradient}, {wanted.at(name)}, 1e-6);
    }
  });
}

TEST(DataParallel, RanksHoldTheSameBits) {
  constexpr int kSteps = 200;
  std::vector<std::map<std::string, Tensor>> weights(3);
  std::vector<std::map<std::string, Tensor>> kept(3);
  run_ranks(3, [&](const Ranks& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks->rank());
    Model net = test::small_net(true, 1 + rank);  // the start is rank 0's
    TrainStep step(net, {.optimizer = Adam{.lr = 0.01F},
                         .ema = 0.9F,
                         .clip = {.norm = 1.0F},
                         .accumulate = 3,
                         .seed = 7,
                         .communicator = ranks});
    for (int i = 0; i < kSteps; ++i) {
      Batch batch{.inputs = {test::random_tensor({4, 1, 6, 6}, 100 * rank + i % 9)},
                  .target = test::cyclic_labels(4, 3)};
      step.run(batch.inputs, batch.target);
    }
    step.synchronize();
    const TrainState state = clone(step.state());
    weights[rank] = state.weights;
    kept[rank] = state.optimizer;
  });
  EXPECT_TRUE(weights[0].contains("bn.running_mean"));
  EXPECT_TRUE(kept[0].contains("bn.running_mean.average"));
  EXPECT_TRUE(kept[0].contains("head.weight.accumulated"));
  for (std::size_t rank = 1; rank < weights.size(); ++rank) {
    for (const auto& [name, tensor] : weights[0]) {
      EXPECT_TRUE(equal_bits(tensor, weights[rank].at(name))) << name;
    }
    for (const auto& [name, tensor] : kept[0]) {
      EXPECT_TRUE(equal_bits(tensor, kept[rank].at(name))) << name;
    }
  }
}

/// Where ranks share out state, rank 1 updates nothing of the last bucket, and sends it all the
/// same.
class Buckets : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Shards, Buckets, ::testing::Bool());

TEST_P(Buckets, TravelFromTheLastGradientsToTheFirst) {
  run_ranks(2, [&](const Ranks& ranks) {
    Model net = make_net("mlp", Shape{3000}, 10, 1);  // 256 x 3000 f32 is 3 MB
    TrainStep step(net, {.communicator = ranks, .shard_state = GetParam()});
    step.run({test::random_tensor({2, 3000}, 1)}, test::cyclic_labels(2, 10));
    const std::string graph = step.describe();
    // fc1.weight, the first parameter and the last gradient, is larger than a bucket.
    const std::size_t first = graph.find("ai.graft.AllReduce(loss/crossentropy, ");
    const std::size_t second = graph.find("f32[256,3000] = ai.graft.AllReduce(");
    EXPECT_LT(first, second) << graph;
    EXPECT_NE(second, std::string::npos) << graph;
    EXPECT_EQ(graph.find("ai.graft.AllReduce(", second + 30), std::string::npos) << graph;
    EXPECT_THAT(graph, ::testing::Not(HasSubstr("ProductUpdate")));
  });
  Model net = make_net("mlp", Shape{30}, 10, 1);
  TrainStep step(net, {});
  step.run({test::random_tensor({2, 30}, 1)}, test::cyclic_labels(2, 10));
  EXPECT_THAT(step.describe(), ::testing::Not(HasSubstr("AllReduce")));
}

TEST(DataParallel, EachRankDropsOthersElements) {
  run_ranks(2, [](const Ranks& ranks) {
    const std::uint64_t seed = seed_of_rank(5, *ranks);
    EXPECT_EQ(seed == 5, ranks->rank() == 0);
  });
}

struct Fitted {
  std::vector<EpochReport> reports;
  std::vector<Tensor> weights;
  int steps = 0;
};

/// 23 samples in batches of 8: the last has 7.
Fitted fit(const Ranks& ranks, FitOptions options, bool noisy = false) {
  const Shard shard{.index = or_alone(ranks).rank(), .count = or_alone(ranks).size()};
  Model net = test::small_net(noisy);
  Trainer trainer(net, {.optimizer = SGD{.lr = 0.05F}, .communicator = ranks});
  DataLoader loader(images(23), {.batch = 8, .shuffle = true, .seed = 3, .shard = shard});
  DataLoader held_back(images(23), {.batch = 8, .shard = shard, .equal_shards = false});
  options.validation = &held_back;
  Fitted result;
  options.on_step = [&](const Progress&) { return ++result.steps > 0; };
  result.reports = trainer.fit(loader, options);
  result.weights = test::snapshot(net);
  return result;
}

TEST(DataParallel, FitsDataWhoseLastBatchIsOdd) {
  const Fitted lone = fit(nullptr, {});
  EXPECT_EQ(lone.reports[0].samples, 23);
  std::vector<Fitted> fitted(4);
  run_ranks(4, [&](const Ranks& ranks) {
    fitted[static_cast<std::size_t>(ranks->rank())] = fit(ranks, {.epochs = 2}, true);
  });
  for (const Fitted& one : fitted) {
    EXPECT_EQ(one.steps, 6);
    ASSERT_EQ(one.reports.size(), 2U);
    EXPECT_EQ(one.reports[1].samples, 20);  // 7 samples give 4 ranks one each
    EXPECT_EQ(one.reports[1].loss, fitted[0].reports[1].loss);
    EXPECT_EQ(one.reports[1].accuracy, fitted[0].reports[1].accuracy);
    EXPECT_EQ(one.reports[1].validation->samples, 23);
    EXPECT_EQ(one.reports[1].validation->loss, fitted[0].reports[1].validation->loss);
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
      EXPECT_TRUE(equal_bits(one.weights[i], fitted[0].weights[i])) << i;
    }
  }
}

TEST(DataParallel, MeasuresAsOneProcess) {
  const auto evaluate = [](const Ranks& ranks) {
    const Shard shard{.index = or_alone(ranks).rank(), .count = or_alone(ranks).size()};
    Model net = test::small_net(false);
    Evaluator evaluator(net, {.communicator = ranks});
    DataLoader loader(images(21), {.batch = 8, .shard = shard, .equal_shards = false});
    return evaluator.run(loader);
  };
  const Evaluation wanted = evaluate(nullptr);
  run_ranks(4, [&](const Ranks& ranks) {
    const Evaluation found = evaluate(ranks);
    EXPECT_EQ(found.samples, 21);
    EXPECT_NEAR(found.loss, wanted.loss, 1e-6);
    EXPECT_EQ(found.accuracy, wanted.accuracy);
  });
}

TEST(DataParallel, FurtherMetricsSeeAllSamples) {
  run_ranks(2, [&](const Ranks& ranks) {
    Model net = test::small_net(false);
    Evaluator evaluator(net, {.communicator = ranks});
    evaluator.add_metric(metric_from_name("f1"));
    DataLoader whole(images(21), {.batch = 8});
    const Evaluation found = evaluator.run(whole);
    EXPECT_EQ(found.samples, 21);
    EXPECT_EQ(found.metrics.size(), 1U);
    DataLoader part(images(21), {.batch = 8, .shard = {.index = ranks->rank(), .count = 2}});
    expect_error(ErrorKind::argument, "loader of them all", [&] { evaluator.run(part); });
  });
}

TEST(DataParallel, WhatStopsOneStopsAll) {
  std::vector<Fitted> fitted(2);
  run_ranks(2, [&](const Ranks& ranks) {
    int steps = 0;
    const bool stops = ranks->rank() == 1;
    fitted[static_cast<std::size_t>(ranks->rank())] =
        fit(ranks, {.epochs = 3, .goes_on = [&] { return !stops || ++steps < 2; }});
  });
  EXPECT_EQ(fitted[0].steps, 2);
  EXPECT_EQ(fitted[1].steps, 2);
}

TEST(DataParallel, ALossThatIsNoNumberEndsAll) {
  run_ranks(2, [&](const Ranks& ranks) {
    Model net = test::small_net(false);
    Trainer trainer(net, {.communicator = ranks});
    Batch batch = part(0, *ranks);
    if (ranks->rank() == 1) batch.inputs[0].values<float>()[3] = NAN;
    expect_error(ErrorKind::numeric, "the loss is nan in step 1", [&] { trainer.step(batch); });
  });
}

}  // namespace
}  // namespace graft
