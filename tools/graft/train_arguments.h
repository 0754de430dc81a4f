#pragma once

#include <optional>
#include <string>

#include "tools/graft/arguments.h"
#include "tools/graft/group_arguments.h"
#include "tools/graft/run_folder.h"
#include "train/find_rate.h"
#include "train/train_step.h"

namespace graft::cli {

/// What `graft train` and `graft bench` say about the update.
struct OptimizerArguments {
  /// Empty: chosen by what the model is.
  std::string name;
  std::optional<float> lr;
  /// --lr auto: find_rate chooses it.
  bool finds_lr = false;
  std::optional<float> momentum;
  std::optional<float> weight_decay;
  bool nesterov = false;
  /// What --lr and --weight-decay say of some parameters.
  std::vector<ParameterGroup> rates = {};
  std::vector<ParameterGroup> decays = {};
  StatePrecision state_precision = StatePrecision::f32;
};
void add_arguments(CLI::App& app, OptimizerArguments& arguments);
/// `lr` and `momentum`: for sgd when the command does not say them. Throws Error{argument}.
Optimizer make_optimizer(const OptimizerArguments& arguments, float sgd_lr, float sgd_momentum);
/// The parameters that have a rate or a decay of their own.
std::vector<ParameterGroup> make_groups(const OptimizerArguments& arguments);

/// --state-precision.
void add_arguments(CLI::App& app, StatePrecision& precision);
/// --precision.
void add_arguments(CLI::App& app, Precision& precision);

/// Adds --memory: bytes, or with K, M or G, 1024 times as many, and so on.
void add_memory_argument(CLI::App& app, std::size_t& budget);

struct ScheduleArguments {
  std::string name = "cosine";
  std::optional<std::int64_t> warmup;
  std::optional<float> gamma;
  std::optional<std::int64_t> every;
  std::vector<ByPattern> others = {};
};
void add_arguments(CLI::App& app, ScheduleArguments& arguments);
/// Settings that the command does not say follow from the number of updates.
Schedule make_schedule(const ScheduleArguments& arguments, std::int64_t total_updates);

/// Which parameters train.
struct ParameterArguments {
  std::string trainable;
  std::string freeze;
  std::vector<std::vector<std::string>> tied;
};
void add_arguments(CLI::App& app, ParameterArguments& arguments);

struct TrainArguments {
  std::string model;
  std::string out;
  DataArguments data;
  LossArguments loss;
  OptimizerArguments optimizer;
  ScheduleArguments schedule;
  ComputeArguments compute;
  Precision precision = Precision::f32;
  int epochs = 2;
  std::uint64_t seed = 0;
  std::optional<float> clip_norm;
  std::optional<float> clip_value;
  int accumulate = 1;
  int sync_every = 1;
  bool sync_bn = false;
  WirePrecision wire_precision = WirePrecision::f32;
  bool shard_state = false;
  std::size_t memory = 0;
  ParameterArguments parameters;
  StageArguments stages;
  float ema = 0.0F;
  bool augment = false;
  std::string validate;
  std::vector<std::string> metrics;
  /// What the best epoch is best by; empty: accuracy on the data to measure with, or the loss.
  std::string monitor;
  /// "last" or "best": which weights are written.
  std::string keep = "last";
  /// Epochs without improvement; 0: never.
  int early_stopping = 0;
  int reduce_on_plateau = 0;
  RunArguments run;
  bool debug_nan = false;
  bool dry_run = false;
  bool json = false;
};
void add_arguments(CLI::App& app, TrainArguments& arguments);
/// Updates in all. Throws Error{argument} if there would be none.
std::int64_t total_updates(const TrainArguments& arguments, std::int64_t samples);
/// `samples` in an epoch.
TrainOptions make_options(const TrainArguments& arguments, const Loss& loss, std::int64_t samples);

/// What `graft lr-find` finds for these arguments; the model stays as it is.
RateFound find_rate_for(const TrainArguments& arguments, const Loss& loss, Model& model,
                        DataLoader& loader);

}  // namespace graft::cli
