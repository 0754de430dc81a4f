#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "train/callback.h"

namespace graft {

/// A line of metrics.jsonl: the numbers of an epoch by their names, "epoch" first.
using MetricsRow = std::vector<std::pair<std::string, double>>;

/// The lines of a metrics.jsonl; what is torn, as a killed process may leave it, or foreign is left
/// out. Throws Error{io} if the file cannot be read.
std::vector<MetricsRow> read_metrics(const std::filesystem::path& file);

/// Writes down what each epoch did: a line of `metrics.jsonl` and a row of `metrics.csv` (columns:
/// docs/runs.md). Epoch 0 is the measurement before the first step. A resumed run drops lines of
/// epochs that it does again. A file that cannot be written is reported by `Run::report_problem`; a
/// folder that was taken away is made anew.
class RunLog : public Callback {
 public:
  explicit RunLog(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void on_start(Run& run) override;
  void on_step(Run& run, const Progress& progress) override;
  bool looks_at_step(const Run& /*run*/) override { return false; }
  void on_validation(Run& run, const Evaluation& evaluation) override;
  void on_epoch(Run& run, const EpochReport& report) override;

 private:
  void add(Run& run, MetricsRow row);
  void write(Run& run);

  std::filesystem::path folder_;
  std::vector<MetricsRow> rows_;
  double learning_rate_ = 0.0;
};

/// Writes TensorBoard's event file into the folder: loss, accuracy and learning rate of every tenth
/// step and of epochs, over updates; after an epoch a new file, if the one before was taken away or
/// could not be written, which `Run::report_problem` is told. Source:
/// tensorflow/core/util/event.proto and summary.proto; TFRecord files.
class TensorBoardLog : public Callback {
 public:
  explicit TensorBoardLog(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void on_start(Run& run) override;
  void on_step(Run& run, const Progress& progress) override;
  bool looks_at_step(const Run& /*run*/) override { return false; }
  void on_validation(Run& run, const Evaluation& evaluation) override;
  void on_epoch(Run& run, const EpochReport& report) override;
  void on_end(Run& run) override;

 private:
  void open(Run& run);
  void open_if_lost(Run& run);
  void write(Run& run, const std::string& event);
  void flush(Run& run);

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::ofstream file_;
  bool is_lost_ = false;
};

}  // namespace graft
