#include "train/checkpoint.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "io/file.h"
#include "train/trainer.h"

namespace graft {

Checkpoint::Checkpoint(std::filesystem::path folder, CheckpointOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      monitor_(options_.monitor, options_.smaller_is_better) {
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

/// A run that measured the model before its first step may be resumed there.
void Checkpoint::on_start(Run& run) {
  const RunPosition& at = run.position;
  const bool is_new = at.epoch == 0 && at.batch == 0 && !at.before;
  if (is_new) monitor_ = Monitor(options_.monitor, options_.smaller_is_better);
  saved_at_ = Clock::now();
  saved_epoch_ = run.position.epoch;
  saved_batch_ = run.position.batch;
}

bool Checkpoint::looks_at_step(const Run& /*run*/) {
  const std::chrono::duration<double, std::ratio<60>> passed = Clock::now() - saved_at_;
  is_due_ = passed.count() >= options_.minutes;
  return is_due_;
}

void Checkpoint::on_step(Run& run, const Progress& /*progress*/) {
  if (std::exchange(is_due_, false)) run.saves = true;
}

void Checkpoint::on_save(Run& run) {
  save_last(run);
}

/// What there was before training may stay the best, by what was measured then.
void Checkpoint::on_validation(Run& run, const Evaluation& evaluation) {
  if (run.position.epoch > 0 || monitor_.best()) return;
  const auto numbers = numbers_of(evaluation);
  const auto is_monitored = [&](const auto& number) { return number.first == monitor_.name(); };
  if (!monitor_.name().empty() && std::ranges::none_of(numbers, is_monitored)) return;
  EpochReport before;
  before.validation = evaluation;
  if (monitor_.improves(before)) save(run, best());
}

/// The best comes first: whatever ends the process between the two, a resumed run finds the best
/// again. What is both is one file with two names.
void Checkpoint::after_epoch(Run& run, const EpochReport& report) {
  const bool is_best = monitor_.improves(report) && save(run, best());
  if (is_best && attempt(run, [&] { return link_file(best(), last()); })) {
    saved_at_ = Clock::now();
    tell_saved(run);
  } else {
    save_last(run);
  }
}

/// What was taken away since it was written is written anew, where it is this epoch's.
void Checkpoint::on_end(Run& run) {
  std::error_code ignored;
  const RunPosition& at = run.position;
  const bool is_saved = saved_epoch_ == at.epoch && saved_batch_ == at.batch;
  const bool is_best = monitor_.best_epoch() == at.epoch && at.batch == 0 && monitor_.best();
  if (!is_saved || !std::filesystem::exists(last(), ignored)) save_last(run);
  if (is_best && !std::filesystem::exists(best(), ignored)) save(run, best());
}

void Checkpoint::save_last(Run& run) {
  saved_at_ = Clock::now();  // a disk that is full is not tried at each step
  if (save(run, last())) tell_saved(run);
}

void Checkpoint::tell_saved(Run& run) {
  saved_epoch_ = run.position.epoch;
  saved_batch_ = run.position.batch;
  for (const auto& callback : run.callbacks) callback->on_checkpoint(run, last());
}

bool Checkpoint::save(Run& run, const std::filesystem::path& path) {
  const TrainingState state = run.trainer.state(run);
  return attempt(run, [&] {
    make_folder(folder_);
    save_training_state(path, state);
    return true;
  });
}

bool Checkpoint::attempt(Run& run, const std::function<bool()>& write) {
  try {
    return write();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    run.report_problem(error.what());
    return false;
  }
}

}  // namespace graft
