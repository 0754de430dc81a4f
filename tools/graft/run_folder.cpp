#include "tools/graft/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "graft/version.h"
#include "io/file.h"
#include "tools/graft/arguments.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/group_arguments.h"
#include "tools/graft/options.h"
#include "tools/graft/run_record.h"
#include "tools/graft/run_settings.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kParent = "runs";
constexpr const char* kLast = "last.safetensors";
constexpr const char* kConfig = "config.json";

bool holds_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kLast, ignored);
}

/// The run in `runs` that was written to last; of this model, where one is named.
std::optional<fs::path> newest_run(const std::string& model) {
  const std::string stem = fs::path(model).stem().string() + "-";
  std::optional<fs::path> newest;
  fs::file_time_type time{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kParent, error)) {
    if (!holds_run(entry.path())) continue;
    if (!model.empty() && !entry.path().filename().string().starts_with(stem)) continue;
    const fs::file_time_type written = fs::last_write_time(entry.path() / kLast, error);
    if (newest && written <= time) continue;
    newest = entry.path();
    time = written;
  }
  return newest;
}

std::string given_value(CLI::App& app, const std::string& option) {
  const CLI::Option* const found = app.get_option_no_throw(option);
  return found == nullptr || found->count() == 0 ? std::string() : found->results().back();
}

/// "auto": the run of --run or the newest, if there is one to go on with; else none.
std::optional<fs::path> run_to_resume(CLI::App& app, const std::string& wanted) {
  if (wanted == "auto") {
    const std::string folder = given_value(app, "--run");
    if (folder.empty()) return newest_run(given_value(app, "MODEL"));
    return holds_run(folder) ? std::optional<fs::path>(folder) : std::nullopt;
  }
  if (!holds_run(wanted)) {
    throw CLI::ValidationError("--resume", "'" + wanted + "' holds no run: there is no " + kLast);
  }
  return wanted;
}

/// Throws if --run names another folder than the one that --resume goes on with.
void check_one_folder(CLI::App& app, const std::string& resumed) {
  const std::string folder = given_value(app, "--run");
  std::error_code ignored;
  if (folder.empty() || fs::equivalent(folder, resumed, ignored)) return;
  throw CLI::ValidationError("--resume", "'" + resumed + "' is one folder, --run '" + folder +
                                             "' another; leave out --run");
}

/// What may change without another run coming of it; threads change how sums are rounded.
const std::vector<std::string> kFree{
    "model",  "epochs", "out",     "validate", "memory",
    "device", "keep",   "threads", "allow",    "checkpoint-minutes"};

void resume(CLI::App& app, const std::string& wanted, RunArguments& arguments) {
  const std::optional<fs::path> folder = run_to_resume(app, wanted);
  if (!folder) return;
  check_one_folder(app, folder->string());
  arguments.resumed = folder->string();
  const ConfigFile recorded(app, *folder / kConfig);
  const std::vector<std::string> changed = contradictions(app, recorded, kFree);
  if (!changed.empty()) {
    throw CLI::ValidationError(
        "--resume",
        joined(changed) + ": that would be another run; start one by --config " + recorded.path());
  }
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string> values = recorded.of(*option);
    // What is said by pattern may have left the plain value to the run.
    if (takes_patterns(*option) && !values.empty()) option->clear();
    if (option->count() == 0) give(*option, values, recorded.path());
  }
}

/// A killed process leaves what it had begun to write.
void remove_temporaries(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".graft-") && name.ends_with(".tmp")) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

void add_arguments(CLI::App& app, RunArguments& arguments) {
  app.add_option_function<std::string>(
         "--resume", [&app, &arguments](const std::string& run) { resume(app, run, arguments); },
         "go on with the run in this folder, with its settings; 'auto': with that of --run or the "
         "newest of the model in runs/, if there is one")
      ->type_name("DIR|auto");
  app.add_option("--run", arguments.folder,
                 "folder for checkpoints, metrics and settings (default: runs/MODEL-N)")
      ->type_name("DIR");
  CLI::Option* const none = app.add_flag("--no-run", arguments.none, "keep none of these");
  for (const char* folder : {"--run", "--resume"}) none->excludes(app.get_option(folder));
  app.add_option("--checkpoint-minutes", arguments.checkpoint_minutes,
                 "longest time without a checkpoint; there is one after each epoch")
      ->capture_default_str()
      ->check(between(1e-3, 1e9));
}

fs::path RunArguments::start() const {
  return resumed.empty() ? fs::path() : fs::path(resumed) / kLast;
}

RunFolder::RunFolder(const RunArguments& arguments, const fs::path& model)
    : path_(arguments.resumed.empty() ? arguments.folder : arguments.resumed),
      is_resumed_(!arguments.resumed.empty()) {
  if (path_.empty()) {
    make_new(model);
  } else if (!is_resumed_ && holds_run(path_)) {
    fail(ErrorKind::argument, "'", path_.string(), "' holds a run: go on with it by --resume ",
         path_.string(), ", or choose another folder");
  } else {
    make_folder(path_);
  }
  lock();
  remove_temporaries(path_);
  if (is_resumed_) config_ = read_file(path_ / kConfig, kMostConfigBytes);
}

RunFolder::~RunFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RunFolder::make_new(const fs::path& model) {
  std::error_code error;
  path_ = fs::absolute(kParent, error);
  fs::create_directories(kParent, error);
  for (int number = 1; !error; ++number) {
    path_ = fs::path(kParent) / text(model.stem().string(), "-", number);
    if (fs::create_directory(path_, error)) return;
  }
  fail(ErrorKind::io, "cannot make folder '", path_.string(), "': ", error.message(),
       "; name another by --run, or do without by --no-run");
}

/// The system lets go of the lock whatever ends the process.
void RunFolder::lock() {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    descriptor_ = -1;
    fail(ErrorKind::argument, "another process trains in '", path_.string(), "'");
  }
}

bool RunFolder::restore() {
  std::error_code ignored;
  if (fs::exists(path_ / kConfig, ignored)) return false;
  make_folder(path_);
  ::close(std::exchange(descriptor_, -1));
  lock();
  write_file(path_ / kConfig, config_);
  return true;
}

void RunFolder::write_config(const nlohmann::ordered_json& settings) {
  if (is_resumed_) {
    const auto before = nlohmann::ordered_json::parse(config_, nullptr, false);
    if (before.is_object() && before.contains("settings") && before["settings"] == settings) return;
  }
  utsname system{};
  ::uname(&system);
  const nlohmann::ordered_json config{{"graft", std::string(kVersion)},
                                      {"machine",
                                       {{"host", system.nodename},
                                        {"system", text(system.sysname, " ", system.release)},
                                        {"processor", system.machine},
                                        {"threads", thread_count()}}},
                                      {"settings", settings}};
  config_ = config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_file(path_ / kConfig, config_);
}

void FolderKeeper::on_step(graft::Run& run, const Progress& /*progress*/) {
  look(run);
}

void FolderKeeper::on_validation(graft::Run& run, const Evaluation& /*evaluation*/) {
  look(run);
}

void FolderKeeper::on_epoch(graft::Run& run, const EpochReport& /*report*/) {
  look(run);
}

void FolderKeeper::on_end(graft::Run& run) {
  look(run);
}

void FolderKeeper::look(graft::Run& run) {
  try {
    if (!folder_.restore()) return;
    run.report_problem("the folder '" + folder_.path().string() +
                       "' was taken away, with the checkpoints in it; it is made anew");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;  // another process has taken its place
    run.report_problem(error.what());
  }
}

}  // namespace graft::cli
