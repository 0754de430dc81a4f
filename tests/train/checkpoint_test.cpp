// A run that is broken off anywhere and goes on in new objects ends with the bits of one that was
// not: weights, optimizer, running statistics, reports.
#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "io/file.h"
#include "io/safetensors.h"
#include "tests/data/test_files.h"
#include "tests/train/one_training.h"
#include "train/run_log.h"
#include "train/trainer.h"

namespace graft {
namespace {

using test::images;
using test::OneTraining;
using testing::expect_error;
using ::testing::HasSubstr;
using testing::TempFolder;

struct Setting {
  const char* name;
  TrainOptions options;
};

class Resume : public ::testing::TestWithParam<Setting> {};

TEST_P(Resume, EndsWithTheSameBitsWhereverItWasBrokenOff) {
  OneTraining whole(GetParam().options);
  const std::vector<EpochReport> wanted = whole.fit({}, {}, 0);
  const TrainState end = whole.trainer.train_step().state();
  // 7 batches an epoch, and 3 of validation: some breaks are in the midst of a measurement.
  for (const int most : {1, 2, 6, 7, 8, 9, 10, 11, 16, 25}) {
    const TempFolder folder;
    const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
    OneTraining first(GetParam().options);
    first.fit({checkpoint}, {}, most);
    OneTraining second(GetParam().options);
    const auto reports =
        second.fit({std::make_shared<Checkpoint>(folder.path())}, checkpoint->last(), 0);
    const TrainState now = second.trainer.train_step().state();
    ASSERT_EQ(now.updates, end.updates) << most;
    ASSERT_EQ(now.batches, end.batches) << most;
    for (const auto& [name, tensor] : end.weights) {
      ASSERT_TRUE(equal_bits(tensor, now.weights.at(name))) << most << ' ' << name;
    }
    ASSERT_EQ(now.optimizer.size(), end.optimizer.size()) << most;
    for (const auto& [name, tensor] : end.optimizer) {
      ASSERT_TRUE(equal_bits(tensor, now.optimizer.at(name))) << most << ' ' << name;
    }
    ASSERT_FALSE(reports.empty()) << most;
    EXPECT_EQ(reports.front().epoch, (most - 1) / 10 + 1) << most;
    EXPECT_EQ(reports.back().loss, wanted.back().loss) << most;
    EXPECT_EQ(reports.back().validation->loss, wanted.back().validation->loss) << most;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Resume,
    ::testing::Values(
        Setting{"sgd", {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}}},
        Setting{"accumulate",
                {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F, .weight_decay = 1e-3F},
                 .clip = {.norm = 1.0F},
                 .schedule = with_warmup(cosine_lr(), 2),
                 .accumulate = 3,
                 .seed = 7}},
        Setting{"groups",
                {.optimizer = AdamW{.lr = 1e-2F},
                 .groups = {{.pattern = "head.*", .lr = 5e-2F, .schedule = cosine_lr()},
                            {.pattern = "bn.*", .weight_decay = 0.0F, .start = 5},
                            {.pattern = "conv.*", .start = 9}},
                 .layer_decay = 0.7F,
                 .ema = 0.9F}},
        Setting{"adam", {.optimizer = Adam{}, .state_precision = StatePrecision::bf16}}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Checkpoint, KeepsLastAndBest) {
  const TempFolder folder;
  const auto checkpoint =
      std::make_shared<Checkpoint>(folder.path(), CheckpointOptions{.monitor = "loss"});
  OneTraining session({.optimizer = Adam{.lr = 1e-2F}});
  session.fit({checkpoint}, {}, 0);
  EXPECT_EQ(load_training_state(checkpoint->last()).position.epoch, 3);
  EXPECT_EQ(load_training_state(checkpoint->best()).position.epoch,
            checkpoint->monitor().best_epoch());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".safetensors");
  }
}

TEST(Checkpoint, TheBestEpochIsWrittenOnceUnderBothNames) {
  const TempFolder folder;
  const auto checkpoint =
      std::make_shared<Checkpoint>(folder.path(), CheckpointOptions{.monitor = "loss"});
  OneTraining session({.optimizer = Adam{.lr = 1e-2F}});
  session.fit({checkpoint}, {}, 0);
  ASSERT_EQ(checkpoint->monitor().best_epoch(), 3) << "losses fall";
  EXPECT_TRUE(std::filesystem::equivalent(checkpoint->last(), checkpoint->best()));
}

TEST(Checkpoint, ASecondRunHasABestOfItsOwn) {
  const TempFolder folder;
  const auto checkpoint =
      std::make_shared<Checkpoint>(folder.path(), CheckpointOptions{.monitor = "loss"});
  checkpoint->load_state({{"best", -1.0}, {"best_epoch", 7.0}});
  OneTraining session({});
  session.fit({checkpoint}, {}, 0);
  EXPECT_LE(checkpoint->monitor().best_epoch(), 3);
  EXPECT_TRUE(std::filesystem::exists(checkpoint->best()));
}

/// As somebody may while the last epoch is measured.
TEST(Checkpoint, WhatIsGoneAtTheEndIsWrittenAnew) {
  class Remover : public Callback {
   public:
    explicit Remover(std::filesystem::path folder) : folder_(std::move(folder)) {}
    void on_end(graft::Run& /*run*/) override { std::filesystem::remove_all(folder_); }

   private:
    std::filesystem::path folder_;
  };
  const TempFolder folder;
  const auto checkpoint =
      std::make_shared<Checkpoint>(folder.path() / "run", CheckpointOptions{.monitor = "loss"});
  OneTraining session({.optimizer = Adam{.lr = 1e-2F}});
  session.fit({std::make_shared<Remover>(folder.path() / "run"), checkpoint}, {}, 0);
  EXPECT_EQ(load_training_state(checkpoint->last()).position.epoch, 3);
  EXPECT_EQ(load_training_state(checkpoint->best()).position.epoch, 3);
}

TEST(Checkpoint, ComesAfterSoManyMinutesToo) {
  class Counter : public Callback {
   public:
    void on_checkpoint(graft::Run& /*run*/, const std::filesystem::path& /*path*/) override {
      ++count;
    }
    int count = 0;
  };
  const TempFolder folder;
  const auto counter = std::make_shared<Counter>();
  OneTraining session({});
  session.fit(
      {std::make_shared<Checkpoint>(folder.path(), CheckpointOptions{.minutes = 1e-9}), counter},
      {}, 0);
  EXPECT_EQ(counter->count, 3 * 7 + 3);
}

TEST(Checkpoint, TrainingGoesOnWithoutAPlaceToWrite) {
  const TempFolder folder;
  const std::filesystem::path place = folder.path() / "run";
  const auto checkpoint = std::make_shared<Checkpoint>(place);
  std::filesystem::remove_all(place);
  std::ofstream(place) << "a file where the folder was";
  std::vector<std::string> problems;
  OneTraining session({});
  DataLoader loader(images(), {.batch = 25});
  const auto reports = session.trainer.fit(
      loader, {.epochs = 2, .callbacks = {checkpoint}, .on_problem = [&](const std::string& text) {
                 problems.push_back(text);
               }});
  EXPECT_EQ(reports.size(), 2U);
  ASSERT_GE(problems.size(), 2U);
  EXPECT_THAT(problems.front(), HasSubstr("cannot make folder"));
}

TEST(Checkpoint, AFolderThatWasTakenAwayIsMadeAnew) {
  const TempFolder folder;
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path() / "run");
  std::filesystem::remove_all(folder.path() / "run");
  OneTraining session({});
  session.fit({checkpoint}, {}, 0);
  EXPECT_EQ(load_training_state(checkpoint->last()).position.epoch, 3);
}

TEST(LoadState, RefusesStatesOfOtherModelsAndOptimizers) {
  OneTraining sgd({.optimizer = SGD{.lr = 0.1F, .momentum = 0.9F}});
  sgd.fit({}, {}, 0);
  const TrainState state = clone(sgd.trainer.train_step().state());
  const auto load = [&](TrainOptions options, const TrainState& from) {
    OneTraining other(std::move(options));
    const std::vector<Tensor> before = test::snapshot(other.net);
    expect_error(ErrorKind::argument, "state",
                 [&] { other.trainer.train_step().load_state(from); });
    const std::vector<Tensor> after = test::snapshot(other.net);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(equal_bits(before[i], after[i]));
  };
  load({.optimizer = Adam{}}, state);
  load({.optimizer = SGD{.lr = 0.1F}}, state);
  load({.optimizer = SGD{.lr = 0.1F, .momentum = 0.9F}, .trainable = "head.*"}, state);
  const TrainOptions same{.optimizer = SGD{.lr = 0.1F, .momentum = 0.9F}};
  TrainState wrong = state;
  wrong.weights.erase("conv.weight");
  load(same, wrong);
  wrong = state;
  wrong.weights["more"] = Tensor::scalar(1.0F);
  load(same, wrong);
  wrong = state;
  wrong.weights["conv.weight"] = Tensor::zeros(DType::f32, {4});
  load(same, wrong);
  wrong = state;
  wrong.optimizer["conv.weight.momentum"] = Tensor::zeros(DType::f32, {4});
  load(same, wrong);
  wrong = state;
  wrong.optimizer.clear();
  load(same, wrong);
  wrong = state;
  wrong.updates = INT64_MAX;  // one more would be less than none
  load(same, wrong);
}

TEST(LoadState, RefusesStateOfAnotherPrecision) {
  OneTraining f32({.optimizer = Adam{}});
  OneTraining bf16({.optimizer = Adam{}, .state_precision = StatePrecision::bf16});
  f32.fit({}, {}, 0);
  bf16.fit({}, {}, 1);
  for (const auto& [from, into] : {std::pair(&f32, &bf16), std::pair(&bf16, &f32)}) {
    const TrainState state = clone(from->trainer.train_step().state());
    const std::vector<Tensor> before = test::snapshot(into->net);
    expect_error(ErrorKind::argument, "another optimizer or precision",
                 [&] { into->trainer.train_step().load_state(state); });
    const std::vector<Tensor> after = test::snapshot(into->net);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(equal_bits(before[i], after[i]));
  }
}

TEST(TrainingState, DamagedFilesAreRefused) {
  const TempFolder folder;
  OneTraining session({});
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  session.fit({checkpoint}, {}, 2);
  const safetensors::Content good = safetensors::load(checkpoint->last());
  const auto load = [&](std::string_view part, const auto& damage) {
    safetensors::Content content = good;
    damage(content);
    safetensors::save(folder.path() / "damaged", content);
    expect_error(ErrorKind::io, part, [&] { load_training_state(folder.path() / "damaged"); });
  };
  for (std::size_t i = 0; i < good.metadata.size(); ++i) {
    if (good.metadata[i].first.starts_with("callback/")) continue;
    load("", [&](auto& content) {
      content.metadata.erase(content.metadata.begin() + static_cast<std::ptrdiff_t>(i));
    });
    load("", [&](auto& content) { content.metadata[i].second = "x"; });
  }
  load("'callback/monitor' names no number",
       [](auto& content) { content.metadata.emplace_back("callback/monitor", "1"); });
  for (const char* counted : {"loader_epoch", "samples"}) {
    load("9223372036854775807", [&](auto& content) {
      const auto at =
          std::ranges::find(content.metadata, counted, &std::pair<std::string, std::string>::first);
      at->second = "9223372036854775807";
    });
  }
  load("neither of weights", [](auto& content) { content.tensors[0].name = "other"; });
}

/// What 6 epochs do is done too when they are asked for after 3.
TEST(Resume, MoreEpochsHaveAScheduleOfTheirOwn) {
  const TempFolder folder;
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  const TrainOptions options{.optimizer = SGD{.lr = 0.1F},
                             .schedule = schedule_from_name("cosine")};
  OneTraining first(options);
  first.fit({checkpoint}, {}, 0);
  ASSERT_LT(first.trainer.train_step().learning_rate(), 1e-6);
  DataLoader loader(images(), {.batch = 8});
  for (const std::int64_t given : {0, 42}) {
    TrainOptions longer = options;
    longer.total_updates = given;
    OneTraining second(longer);
    std::vector<double> rates;
    second.trainer.fit(loader, {.epochs = 6,
                                .on_step =
                                    [&](const Progress& progress) {
                                      rates.push_back(*progress.learning_rate);
                                      return true;
                                    },
                                .resume = checkpoint->last()});
    ASSERT_EQ(rates.size(), 21U);
    EXPECT_NEAR(rates.front(), 0.05, 1e-6) << "21 of 42 updates are done";
    EXPECT_GT(rates[10], 0.01);
  }
}

/// Its data are separated at first, and a rate like that spoils it.
TEST(Checkpoint, WhatWasBeforeMayBeTheBestByAnyName) {
  for (const char* monitor : {"", "validation_accuracy", "validation_loss"}) {
    const TempFolder folder;
    const auto checkpoint =
        std::make_shared<Checkpoint>(folder.path(), CheckpointOptions{.monitor = monitor});
    OneTraining session({.optimizer = Adam{.lr = 1e-2F}});
    session.fit({}, {}, 0);
    session.trainer.train_step().set_base_learning_rate(3.0F);
    DataLoader loader(images(), {.batch = 8});
    session.trainer.fit(loader,
                        {.validation = &loader, .callbacks = {checkpoint}, .measure_first = true});
    EXPECT_EQ(checkpoint->monitor().best_epoch(), 0) << monitor;
    EXPECT_TRUE(std::filesystem::exists(checkpoint->best())) << monitor;
  }
}

TEST(RunLog, DropsEpochsThatAreDoneAgain) {
  const TempFolder folder;
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  OneTraining first({});
  first.fit({checkpoint, std::make_shared<RunLog>(folder.path())}, {}, 15);
  std::ofstream(folder.path() / "metrics.jsonl", std::ios::app) << R"({"epoch":2,"loss":9})"
                                                                << "\n"
                                                                << R"({"epoch":)";
  OneTraining second({});
  second.fit({std::make_shared<RunLog>(folder.path())}, checkpoint->last(), 0);
  const std::string lines = read_file(folder.path() / "metrics.jsonl", 10000);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  EXPECT_THAT(lines, ::testing::StartsWith(R"({"epoch":1,)"));
  EXPECT_THAT(lines, Not(HasSubstr("9})")));
  const std::string table = read_file(folder.path() / "metrics.csv", 10000);
  EXPECT_THAT(table, ::testing::StartsWith("epoch,updates,learning_rate,loss,accuracy,"));
  EXPECT_EQ(std::ranges::count(table, '\n'), 4);
}

TEST(RunLog, KeepsLinesOfImpossibleCounts) {
  const TempFolder folder;
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  OneTraining first({});
  first.fit({checkpoint}, {}, 15);
  std::ofstream(folder.path() / "metrics.jsonl") << R"({"epoch":-1e300,"updates":1e300})"
                                                 << "\n";
  OneTraining second({});
  second.fit({std::make_shared<RunLog>(folder.path())}, checkpoint->last(), 0);
  EXPECT_THAT(read_file(folder.path() / "metrics.jsonl", 10000),
              ::testing::StartsWith(R"({"epoch":-1e+300,"updates":1e+300})"));
}

}  // namespace
}  // namespace graft
