#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/callback.h"

namespace CLI {
class App;
}

namespace graft::cli {

/// Where a run keeps what must not be lost.
struct RunArguments {
  /// Empty: `runs/MODEL-N`, the first N that is free.
  std::string folder;
  bool none = false;
  /// The folder of a run that goes on.
  std::string resumed;
  double checkpoint_minutes = 10.0;

  /// A folder that is named counts before `none`, which the environment may say for all runs.
  bool is_kept() const { return !none || !folder.empty() || !resumed.empty(); }
  /// The checkpoint to go on from; empty when the run is new.
  std::filesystem::path start() const;
};

/// Adds --resume, --run, --no-run and --checkpoint-minutes. --resume gives the run's settings to
/// those options of the verb that were not given.
void add_arguments(CLI::App& app, RunArguments& arguments);

/// A run's folder, held by this process alone until the object goes.
class RunFolder {
 public:
  /// Makes it, or takes that of a run that is resumed, and removes what a killed process left
  /// behind. `model`: the model's file, of which a new folder gets its name. Throws Error{argument}
  /// if the folder holds a run that is not resumed, or if another process works in it; Error{io} if
  /// it cannot be made or written.
  RunFolder(const RunArguments& arguments, const std::filesystem::path& model);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes config.json: settings, version of Graft, machine. That of a run that is resumed stays
  /// where its settings are the same.
  void write_config(const nlohmann::ordered_json& settings);
  /// Makes anew, with config.json and its lock, what somebody took away meanwhile. False if nothing
  /// was missing. Throws Error{io}.
  bool restore();

 private:
  void make_new(const std::filesystem::path& model);
  void lock();

  std::filesystem::path path_;
  bool is_resumed_ = false;
  int descriptor_ = -1;
  /// The content of config.json.
  std::string config_;
};

/// Restores the folder, which must outlive it, before other callbacks write there: without
/// config.json nobody could go on with the run. What was missing is reported.
class FolderKeeper : public Callback {
 public:
  explicit FolderKeeper(RunFolder& folder) : folder_(folder) {}

  void on_step(graft::Run& run, const Progress& progress) override;
  bool looks_at_step(const graft::Run& /*run*/) override { return false; }
  void on_validation(graft::Run& run, const Evaluation& evaluation) override;
  void on_epoch(graft::Run& run, const EpochReport& report) override;
  void on_end(graft::Run& run) override;

 private:
  void look(graft::Run& run);

  RunFolder& folder_;
};

}  // namespace graft::cli
