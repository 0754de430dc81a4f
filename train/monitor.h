#pragma once

#include <map>
#include <optional>
#include <string>

#include "train/callback.h"

namespace graft {

/// One number of each epoch, the best so far, and the epochs since then. By name: "loss",
/// "accuracy" (of training), "validation_loss", "validation_accuracy", "validation_f1" and other
/// metrics; empty: the first that there is of validation accuracy, validation loss, loss. Smaller
/// is better of losses, "mae", "rmse" and "edit_distance", larger of all others, unless
/// `smaller_is_better` says it, as for a metric of the program's own.
class Monitor {
 public:
  explicit Monitor(std::string name = {}, std::optional<bool> smaller_is_better = {})
      : name_(std::move(name)), smaller_is_better_(smaller_is_better) {}

  /// Takes the epoch's number; whether it is better than the best by more than `least_change`. Any
  /// number is better than NaN, and so is any loss than that of data of which nothing counts.
  /// Throws Error{argument} if the run has no such number, listing those that it has.
  bool improves(const EpochReport& report, double least_change = 0.0);

  /// Its name, once an epoch was seen.
  const std::string& name() const { return name_; }
  std::optional<double> best() const { return best_; }
  /// In which epoch that was; 0: before the first.
  int best_epoch() const { return best_epoch_; }
  /// Epochs that did not improve it, since the best or since `wait_anew`.
  int waited() const { return waited_; }
  void wait_anew() { waited_ = 0; }

  std::map<std::string, double> state() const;
  void load_state(const std::map<std::string, double>& state);

 private:
  std::string name_;
  std::optional<bool> smaller_is_better_;
  std::optional<double> best_;
  int best_epoch_ = 0;
  int waited_ = 0;
};

/// The numbers of an epoch by the names above, in the order of reports.
std::vector<std::pair<std::string, double>> numbers_of(const EpochReport& report);
/// Those of a measurement alone.
std::vector<std::pair<std::string, double>> numbers_of(const Evaluation& evaluation);

/// Ends training when the monitored number has not become better for `patience` epochs. A run that
/// is not resumed begins anew, also where it is the callback's second.
class EarlyStopping : public Callback {
 public:
  struct Options {
    int patience = 5;
    std::string monitor = {};
    double least_change = 0.0;
    std::optional<bool> smaller_is_better = {};
  };
  /// Throws Error{argument} unless patience is at least 1 and least_change finite and at least 0.
  explicit EarlyStopping(Options options);

  void on_start(Run& run) override;
  bool looks_at_step(const Run& /*run*/) override { return false; }
  void on_epoch(Run& run, const EpochReport& report) override;
  std::string name() const override { return "early_stopping"; }
  std::map<std::string, double> state() const override { return monitor_.state(); }
  void load_state(const std::map<std::string, double>& state) override {
    monitor_.load_state(state);
  }

  /// Whether it has ended the run.
  bool has_stopped() const { return monitor_.waited() >= options_.patience; }

 private:
  Options options_;
  Monitor monitor_;
};

/// Multiplies the base learning rate when the monitored number has not become better for `patience`
/// epochs, as Keras's ReduceLROnPlateau does (PyTorch's waits one epoch more).
class ReduceOnPlateau : public Callback {
 public:
  struct Options {
    float factor = 0.1F;
    int patience = 10;
    float floor = 0.0F;
    std::string monitor = {};
    double least_change = 0.0;
    std::optional<bool> smaller_is_better = {};
  };
  /// Throws Error{argument} as EarlyStopping does, and unless factor is between 0 and 1 and floor
  /// finite and at least 0.
  explicit ReduceOnPlateau(Options options);

  void on_start(Run& run) override;
  bool looks_at_step(const Run& /*run*/) override { return false; }
  void on_epoch(Run& run, const EpochReport& report) override;
  std::string name() const override { return "reduce_on_plateau"; }
  std::map<std::string, double> state() const override { return monitor_.state(); }
  void load_state(const std::map<std::string, double>& state) override {
    monitor_.load_state(state);
  }

 private:
  Options options_;
  Monitor monitor_;
};

}  // namespace graft
