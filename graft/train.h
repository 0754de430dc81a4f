#pragma once

// Training: Trainer with epochs and measures, TrainStep for loops by hand, Evaluator.

#include "train/evaluator.h"
#include "train/progress_bar.h"
#include "train/train_step.h"
#include "train/trainable.h"
#include "train/trainer.h"
