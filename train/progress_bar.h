#pragma once

#include <chrono>
#include <string>

#include "train/trainer.h"

namespace graft {

/// One line on stderr that shows how far training is; nothing at all unless stderr is a terminal.
/// `fit(loader, {.on_step = [&](const Progress& p) { bar.show(p); return true; }})`.
class ProgressBar {
 public:
  ProgressBar();
  /// Erases the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws the line anew, at most ten times a second.
  void show(const Progress& progress);
  /// Erases the line, so that other text can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_drawn_ = false;
  Clock::time_point epoch_start_ = Clock::now();
  Clock::time_point last_drawn_{};
  double loss_ = 0.0;
  double accuracy_ = 0.0;
};

/// "epoch 2/10 [#####---------------]  25 %  loss 0.4312  accuracy 84.4 %  12 s left";
/// `elapsed`: seconds since the epoch started.
std::string progress_line(const Progress& progress, double elapsed);

}  // namespace graft
