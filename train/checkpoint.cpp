#include "train/checkpoint.h"

#include <cmath>
#include <system_error>

#include "io/file.h"
#include "train/trainer.h"

namespace graft {
namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::io, "cannot make folder '", folder.string(), "': ", error.message());
  }
}

}  // namespace

Checkpoint::Checkpoint(std::filesystem::path folder, CheckpointOptions options)
    : folder_(std::move(folder)), options_(std::move(options)), monitor_(options_.monitor) {
  if (!(options_.minutes > 0.0)) {
    fail(ErrorKind::argument, "checkpoint: every ", options_.minutes,
         " minutes, wanted a number above 0");
  }
  make_folder(folder_);
  const AtomicFile probe(last());
}

void Checkpoint::load_state(const std::map<std::string, double>& state) {
  monitor_.load_state(state);
}

void Checkpoint::on_start(Run& run) {
  saved_at_ = Clock::now();
  saved_epoch_ = run.position.epoch;
  saved_batch_ = run.position.batch;
}

void Checkpoint::on_step(Run& run, const Progress& /*progress*/) {
  const std::chrono::duration<double, std::ratio<60>> passed = Clock::now() - saved_at_;
  if (passed.count() >= options_.minutes) save_last(run);
}

/// What there was before training may stay the best.
void Checkpoint::on_validation(Run& run, const Evaluation& evaluation) {
  if (run.position.epoch > 0 || !monitor_.name().empty()) return;
  EpochReport before;
  before.validation = evaluation;
  if (monitor_.improves(before)) save(run, best());
}

void Checkpoint::after_epoch(Run& run, const EpochReport& report) {
  if (monitor_.improves(report)) save(run, best());
  save_last(run);
}

void Checkpoint::on_end(Run& run) {
  const bool is_saved = saved_epoch_ == run.position.epoch && saved_batch_ == run.position.batch;
  if (!is_saved) save_last(run);
}

void Checkpoint::save_last(Run& run) {
  saved_at_ = Clock::now();  // a disk that is full is not tried at each step
  if (!save(run, last())) return;
  saved_epoch_ = run.position.epoch;
  saved_batch_ = run.position.batch;
  for (const auto& callback : run.callbacks) callback->on_checkpoint(run, last());
}

bool Checkpoint::save(Run& run, const std::filesystem::path& path) {
  const TrainingState state = run.trainer.state(run);
  try {
    make_folder(folder_);
    save_training_state(path, state);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    run.report_problem(error.what());
    return false;
  }
}

}  // namespace graft
