#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "train/monitor.h"

namespace graft {

struct CheckpointOptions {
  /// How long training goes on without one, within an epoch.
  double minutes = 10.0;
  /// What `best.safetensors` is best by, as Monitor takes it.
  std::string monitor = {};
  std::optional<bool> smaller_is_better = {};
};

/// Keeps a run from being lost: writes `last.safetensors` into a folder after every epoch, every
/// few minutes, and where training ends; `best.safetensors` when an epoch was the best so far.
/// `FitOptions::resume` goes on from either. A file is written beside the old one, synced and
/// renamed, so that whatever happens one of them is whole. One that cannot be written is reported
/// by `Run::report_problem`, and training goes on; a folder that was taken away is made anew. A run
/// that is not resumed begins anew with its best, also where it is the callback's second.
class Checkpoint : public Callback {
 public:
  /// Makes the folder. Throws Error{io} if it cannot be made or written, Error{argument} for
  /// options that make no sense.
  explicit Checkpoint(std::filesystem::path folder, CheckpointOptions options = {});

  void on_start(Run& run) override;
  void on_step(Run& run, const Progress& progress) override;
  bool looks_at_step(const Run& run) override;
  void on_save(Run& run) override;
  void on_validation(Run& run, const Evaluation& evaluation) override;
  void after_epoch(Run& run, const EpochReport& report) override;
  void on_end(Run& run) override;
  std::string name() const override { return "checkpoint"; }
  std::map<std::string, double> state() const override { return monitor_.state(); }
  void load_state(const std::map<std::string, double>& state) override;

  std::filesystem::path last() const { return folder_ / "last.safetensors"; }
  std::filesystem::path best() const { return folder_ / "best.safetensors"; }
  const Monitor& monitor() const { return monitor_; }

 private:
  using Clock = std::chrono::steady_clock;

  void save_last(Run& run);
  void tell_saved(Run& run);
  bool save(Run& run, const std::filesystem::path& path);
  /// What `write` says; false after a file could not be written, which is reported.
  static bool attempt(Run& run, const std::function<bool()>& write);

  std::filesystem::path folder_;
  CheckpointOptions options_;
  Monitor monitor_;
  Clock::time_point saved_at_ = Clock::now();
  bool is_due_ = false;  // at the step that was asked about last
  int saved_epoch_ = -1;
  std::int64_t saved_batch_ = 0;
};

}  // namespace graft
