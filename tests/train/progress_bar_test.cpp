#include "train/progress_bar.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

const Progress kProgress{.epoch = 2,
                         .epochs = 10,
                         .batch = 5,
                         .batches = 20,
                         .step = {.loss = 0.43125, .accuracy = 0.844, .samples = 64},
                         .learning_rate = 0.05};
const Pace kPace{.samples_per_second = 1234.4,
                 .memory_bytes = std::uint64_t{412} << 20U,
                 .seconds_left = 12.3,
                 .run_seconds_left = 184.0};

TEST(ProgressBar, ShowsAllThatIsKnown) {
  EXPECT_EQ(progress_line(kProgress, kPace, 200),
            "epoch 2/10  [##########------------------------------]  25 %  loss 0.4313  "
            "accuracy 84.4 %  1234 samples/s  lr 0.05  412 MiB  0:12 left  run 3:04 left");
}

TEST(ProgressBar, WhatSaysLeastGoesFirstWhereColumnsAreFew) {
  EXPECT_EQ(progress_line(kProgress, kPace, 79),
            "epoch 2/10  [#####---------------]  25 %  loss 0.4313  run 3:04 left");
  EXPECT_EQ(progress_line(kProgress, kPace, 59),
            "epoch 2/10  [##------]  25 %  loss 0.4313  run 3:04 left");
  EXPECT_EQ(progress_line(kProgress, kPace, 20), "epoch 2/10  25 %");
  EXPECT_EQ(progress_line(kProgress, kPace, 5), "epoch");
}

TEST(ProgressBar, NoWidthIsExceeded) {
  for (std::size_t columns = 0; columns < 250; ++columns) {
    EXPECT_LE(progress_line(kProgress, kPace, columns).size(), columns);
  }
}

TEST(ProgressBar, LeavesOutWhatThereIsNot) {
  const Progress progress{
      .epoch = 1, .epochs = 1, .batch = 3, .batches = 3, .step = {.loss = 2.0, .samples = 8}};
  EXPECT_EQ(progress_line(progress, {}, 80),
            "epoch 1/1  [####################]  100 %  loss 2.0000");
}

TEST(ProgressBar, ALossThatGrowsStaysShort) {
  Progress progress = kProgress;
  progress.step.loss = 1.25e30;
  const std::string line = progress_line(progress, {}, 59);
  EXPECT_NE(line.find("loss 1.25e+30"), std::string::npos) << line;
  EXPECT_LE(line.size(), 59U);
}

TEST(ProgressBar, TimesHaveTheirUnits) {
  const auto left = [](double seconds) {
    return progress_line(StageProgress{.name = "v", .done = 1, .all = 4}, {.seconds_left = seconds},
                         80);
  };
  EXPECT_EQ(left(0.4), "v  [#####---------------]  25 %  0:00 left");
  EXPECT_EQ(left(59.6), "v  [#####---------------]  25 %  1:00 left");
  EXPECT_EQ(left(7500), "v  [#####---------------]  25 %  2:05:00 left");
}

}  // namespace
}  // namespace graft
