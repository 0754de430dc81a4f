#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/trainer.h"

namespace graft {

class StatusLine;

/// Where work stands that is no training: a validation, a measurement.
struct StageProgress {
  std::string name;
  /// Of anything: batches, milliseconds.
  std::int64_t done = 0;
  std::int64_t all = 0;
  /// So far; 0 where none are counted.
  std::int64_t samples = 0;
};

/// What a line of progress says beside where the work stands; what is absent or 0 is left out.
struct Pace {
  double samples_per_second = 0.0;
  std::uint64_t memory_bytes = 0;
  std::optional<double> seconds_left;
  /// Of all epochs.
  std::optional<double> run_seconds_left;
};

/// One line on stderr that shows how far work is; nothing at all unless stderr is a terminal. It
/// fits the terminal's width, also when that changes.
/// `fit(loader, {.on_step = [&](const Progress& p) { bar.show(p); return true; }})`.
class ProgressBar {
 public:
  /// `wanted`: false for a bar that never shows.
  explicit ProgressBar(bool wanted = true);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws the line anew, at most ten times a second.
  void show(const Progress& progress);
  void show(const StageProgress& progress);
  /// For Evaluator::run and Trainer::evaluate, which ask before each batch whether to go on: shows
  /// how many of the loader's batches are done, then asks `goes_on`. The bar must outlive it.
  std::function<bool()> counting(std::string name, const DataLoader& loader,
                                 std::function<bool()> goes_on = {});
  /// Erases the line, so that other text can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  Pace pace_of(const Progress& progress) const;

  std::unique_ptr<StatusLine> line_;
  // Of the epoch: time and samples since its first step, which makes plans and so takes longer.
  Clock::time_point epoch_start_ = Clock::now();
  std::int64_t epoch_samples_ = 0;
  double loss_ = 0.0;
  double accuracy_ = 0.0;
  // Of the run: where it began, and the steps done by then.
  std::optional<Clock::time_point> run_start_;
  std::int64_t steps_before_ = 0;
  // Of another stage.
  Clock::time_point stage_start_ = Clock::now();
};

/// "epoch 2/10 [#####---------------]  25 %  loss 0.4312  accuracy 84.4 %  1234 samples/s
/// lr 0.05  412 MiB  0:12 left  run 3:04 left" in at most `columns`: what says least goes first.
std::string progress_line(const Progress& progress, const Pace& pace, std::size_t columns);
/// "validation [#####---------------]  25 %  9876 samples/s  0:02 left".
std::string progress_line(const StageProgress& progress, const Pace& pace, std::size_t columns);

}  // namespace graft
