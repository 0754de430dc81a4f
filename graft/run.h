#pragma once

// Long runs: checkpoints, callbacks, metrics, records of what happened, the choice of a rate and of
// what trains; safetensors files. Federated training: FlatParameters.

#include "io/safetensors.h"
#include "train/callback.h"
#include "train/checkpoint.h"
#include "train/federated.h"
#include "train/find_rate.h"
#include "train/metric.h"
#include "train/monitor.h"
#include "train/run_log.h"
#include "train/trainable.h"
#include "train/training_state.h"
