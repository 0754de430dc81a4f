#include "train/progress_bar.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(ProgressBar, ShowsShareMeasuresAndTimeLeft) {
  const Progress progress{.epoch = 2,
                          .epochs = 10,
                          .batch = 5,
                          .batches = 20,
                          .step = {.loss = 0.43125, .accuracy = 0.844, .samples = 64}};
  // A quarter took 4 s, so three quarters take 12.
  EXPECT_EQ(progress_line(progress, 4.0),
            "epoch 2/10 [#####---------------]  25 %  loss 0.4313  accuracy 84.4 %  12 s left");
}

TEST(ProgressBar, LeavesOutWhatThereIsNot) {
  const Progress progress{
      .epoch = 1, .epochs = 1, .batch = 3, .batches = 3, .step = {.loss = 2.0, .samples = 8}};
  EXPECT_EQ(progress_line(progress, 1.0), "epoch 1/1 [####################] 100 %  loss 2.0000");
}

}  // namespace
}  // namespace graft
