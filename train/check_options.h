#pragma once

#include "train/train_step.h"

namespace graft {

/// Throws Error{argument}, {device} or {unsupported} for options that fit no model.
void check(const TrainOptions& options);

/// Throws Error{argument} unless it is in [0, kMostCounted].
void check_total_updates(std::int64_t total);

}  // namespace graft
