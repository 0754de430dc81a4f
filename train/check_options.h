#pragma once

#include "train/train_step.h"

namespace graft {

/// Throws Error{argument}, {device} or {unsupported} for options that fit no model.
void check(const TrainOptions& options);

}  // namespace graft
