#pragma once

// Training: Trainer with epochs and measures, TrainStep for loops by hand, Evaluator; on several
// machines, mpi_communicator. What a long run and federated training need beside them is in
// graft/run.h.

#include "core/device/mpi_communicator.h"
#include "train/evaluator.h"
#include "train/progress_bar.h"
#include "train/train_step.h"
#include "train/trainer.h"
