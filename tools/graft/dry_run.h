#pragma once

#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "train/trainer.h"

namespace graft::cli {

/// Makes a few steps and says what a step and an epoch take, in memory and time, and what would be
/// written. Writes nothing.
ExitCode dry_run(Trainer& trainer, DataLoader& loader, const TrainArguments& arguments);

}  // namespace graft::cli
