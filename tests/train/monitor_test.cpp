#include "train/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/data/test_files.h"
#include "tests/train/one_training.h"
#include "train/checkpoint.h"

namespace graft {
namespace {

using test::OneTraining;
using testing::expect_error;
using testing::TempFolder;

/// The losses fall, so nothing stops; then a monitor that cannot improve does.
TEST(EarlyStopping, EndsTheRunAndStaysEndedWhenResumed) {
  const TempFolder folder;
  const auto make = [] {
    return std::make_shared<EarlyStopping>(
        EarlyStopping::Options{.patience = 1, .monitor = "loss", .least_change = 1e9});
  };
  const auto stopping = make();
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  OneTraining session({});
  // Whoever comes later sees the epoch too before it is stored.
  EXPECT_EQ(session.fit({checkpoint, stopping}, {}, 0).size(), 2U);
  EXPECT_TRUE(stopping->has_stopped());
  OneTraining second({});
  EXPECT_EQ(second.fit({make()}, checkpoint->last(), 0).size(), 0U);
}

TEST(EarlyStopping, ASecondRunBeginsAnew) {
  const auto stopping = std::make_shared<EarlyStopping>(
      EarlyStopping::Options{.patience = 1, .monitor = "loss", .least_change = 1e9});
  OneTraining session({});
  EXPECT_EQ(session.fit({stopping}, {}, 0).size(), 2U);
  EXPECT_EQ(session.fit({stopping}, {}, 0).size(), 2U);
}

TEST(ReduceOnPlateau, DividesTheRate) {
  OneTraining session({.optimizer = SGD{.lr = 0.1F}});
  session.fit({std::make_shared<ReduceOnPlateau>(ReduceOnPlateau::Options{
                  .factor = 0.5F, .patience = 1, .monitor = "loss", .least_change = 1e9})},
              {}, 0);
  EXPECT_FLOAT_EQ(session.trainer.train_step().learning_rate(), 0.025F);
}

/// A number falls; whether that is better than before only the program knows.
TEST(Monitor, IsToldWhichWayIsBetter) {
  const auto fall = [](Monitor monitor) {
    std::vector<bool> better;
    for (const double value : {3.0, 2.0}) {
      EpochReport report;
      report.validation = Evaluation{.metrics = {{"perplexity", value}}};
      better.push_back(monitor.improves(report));
    }
    return better;
  };
  EXPECT_THAT(fall(Monitor("validation_perplexity")), ::testing::ElementsAre(true, false));
  EXPECT_THAT(fall(Monitor("validation_perplexity", true)), ::testing::ElementsAre(true, true));
}

TEST(Monitor, NamesWhatThereIs) {
  OneTraining session({});
  expect_error(ErrorKind::argument, "valid here: loss, accuracy, validation_loss", [&] {
    session.fit({std::make_shared<EarlyStopping>(EarlyStopping::Options{.monitor = "f1"})}, {}, 0);
  });
}

TEST(Monitor, RefusesEpochsThatAreNone) {
  for (const double none : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    for (const char* key : {"best_epoch", "waited"}) {
      expect_error(ErrorKind::io, text("has ", key), [&] {
        Monitor().load_state({{"best", 1.0}, {key, none}});
      });
    }
  }
}

TEST(Monitor, ForgetsABestThatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Monitor monitor("loss");
  std::vector<bool> better;
  for (const double loss : {nan, nan, 3.0, nan, 2.0}) {
    better.push_back(monitor.improves(EpochReport{.loss = loss}));
  }
  EXPECT_THAT(better, ::testing::ElementsAre(true, false, true, false, true));
}

TEST(Monitor, TakesNoLossOfNothingForTheBest) {
  Monitor monitor("validation_loss");
  for (const double loss : {0.0, 3.0}) {
    monitor.improves({.validation = Evaluation{.loss = loss, .weight = loss}});
  }
  EXPECT_EQ(monitor.best(), 3.0);
}

TEST(Monitor, OptionsThatMakeNoSenseAreRefused) {
  for (const double none : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ErrorKind::argument, "least_change is",
                 [&] { EarlyStopping({.least_change = none}); });
    expect_error(ErrorKind::argument, "least_change is",
                 [&] { ReduceOnPlateau({.least_change = none}); });
    expect_error(ErrorKind::argument, "floor is",
                 [&] { ReduceOnPlateau({.floor = static_cast<float>(none)}); });
  }
}

}  // namespace
}  // namespace graft
