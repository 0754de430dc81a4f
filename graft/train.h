#pragma once

// Training: Trainer with epochs, callbacks and measures, TrainStep for loops by hand, Evaluator;
// checkpoints, records of runs, and safetensors files.

#include "io/safetensors.h"
#include "train/checkpoint.h"
#include "train/evaluator.h"
#include "train/find_rate.h"
#include "train/metric.h"
#include "train/monitor.h"
#include "train/progress_bar.h"
#include "train/run_log.h"
#include "train/train_step.h"
#include "train/trainable.h"
#include "train/trainer.h"
#include "train/training_state.h"
