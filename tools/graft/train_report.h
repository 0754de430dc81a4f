#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/graft/train_arguments.h"
#include "train/callback.h"
#include "train/progress_bar.h"

namespace graft::cli {

/// Tells how training goes: text or JSON lines.
class TrainReport {
 public:
  explicit TrainReport(const TrainArguments& arguments) : arguments_(arguments) {}

  /// `why`: where the update comes from; may be empty.
  void start(const Model& model, const TrainStep& step, const TrainOptions& options,
             const std::string& why) const;
  void folder(const std::string& path, bool is_resumed) const;
  /// Warns that a run which goes on has done all of its epochs.
  void nothing_left(int epochs_done) const;
  /// What the model achieves before the first step.
  void before(const Evaluation& validation) const;
  void epoch(const EpochReport& report) const;
  /// Says what training has done to the model.
  void compare(const Evaluation& before, const Evaluation& after) const;
  void end(const TrainStep& step) const;

 private:
  const TrainArguments& arguments_;
};

/// Prints what the report says of a run, and a line of progress meanwhile; remembers the first and
/// the last measurement.
class Teller : public Callback {
 public:
  /// `validation`: what is measured on; may be null.
  Teller(const TrainReport& report, const DataLoader* validation);

  void on_start(graft::Run& run) override;
  void on_step(graft::Run& run, const Progress& progress) override;
  bool looks_at_step(const graft::Run& /*run*/) override { return false; }
  void on_validation(graft::Run& run, const Evaluation& validation) override;
  void on_epoch(graft::Run& run, const EpochReport& epoch) override;
  void on_end(graft::Run& run) override;
  void on_error(graft::Run& run, const Error& error) override;

  /// What FitOptions::goes_on calls: behind each step, and before each batch of a measurement.
  void on_batch();
  void problem(const std::string& text);
  bool has_problems() const { return has_problems_; }

 private:
  void start_measurement();

  const TrainReport& report_;
  const DataLoader* validation_;
  ProgressBar bar_;
  /// Counts a batch of the measurement that is next or going on.
  std::function<bool()> measured_ = {};
  bool is_behind_step_ = false;
  std::optional<Evaluation> before_ = {};
  std::optional<Evaluation> after_ = {};
  bool has_problems_ = false;
};

}  // namespace graft::cli
