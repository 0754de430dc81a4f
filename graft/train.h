#pragma once

// Training: Trainer with epochs and measures, TrainStep for loops by hand, Evaluator; on several
// machines, mpi_communicator; what federated training exchanges, FlatParameters. What a long run
// needs beside them is in graft/run.h.

#include "core/device/mpi_communicator.h"
#include "train/evaluator.h"
#include "train/federated.h"
#include "train/progress_bar.h"
#include "train/train_step.h"
#include "train/trainer.h"
