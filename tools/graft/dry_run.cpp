#include "tools/graft/dry_run.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

/// The first step makes the plan; those behind it tell what each takes.
double seconds_of_step(Trainer& trainer, DataLoader& loader) {
  constexpr std::int64_t kTimed = 5;
  double fastest = 0.0;
  std::int64_t done = 0;
  for (const Batch& batch : loader) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    trainer.step(batch);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fastest = done <= 1 ? seconds : std::min(fastest, seconds);
    if (++done > kTimed) break;
  }
  return fastest;
}

/// Where the run would be kept; empty where it would not.
std::string folder_of(const RunArguments& run) {
  if (!run.is_kept()) return {};
  if (!run.resumed.empty()) return run.resumed;
  return run.folder.empty() ? "runs/" : run.folder;
}

}  // namespace

ExitCode dry_run(Trainer& trainer, DataLoader& loader, const TrainArguments& arguments) {
  const double step_seconds = seconds_of_step(trainer, loader);
  const double epoch_seconds = step_seconds * static_cast<double>(loader.batches());
  const TrainStep& step = trainer.train_step();
  const std::string folder = folder_of(arguments.run);
  if (arguments.json) {
    print_json({{"event", "dry_run"},
                {"step_seconds", step_seconds},
                {"epoch_seconds", epoch_seconds},
                {"arena_bytes", step.arena_bytes()},
                {"parameter_bytes", step.parameter_bytes()},
                {"state_bytes", step.state_bytes()},
                {"out", arguments.out},
                {"run", folder}});
    return ok;
  }
  std::cout << "a step takes " << fixed(step_seconds * 1e3, 1) << " ms; an epoch, "
            << with_commas(loader.batches()) << " steps, about " << fixed(epoch_seconds, 1)
            << " s without measuring; all " << arguments.epochs << ", "
            << fixed(epoch_seconds * arguments.epochs, 1) << " s\n"
            << "memory: activations and gradients " << bytes_text(step.arena_bytes())
            << ", parameters " << bytes_text(step.parameter_bytes()) << ", optimizer "
            << bytes_text(step.state_bytes()) << '\n'
            << "would write " << arguments.out;
  if (!folder.empty()) {
    std::cout << ", and checkpoints of " << bytes_text(step.parameter_bytes() + step.state_bytes())
              << " or more to " << folder;
  }
  std::cout << "; nothing is written\n";
  return ok;
}

}  // namespace graft::cli
