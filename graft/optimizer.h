#pragma once

// Settings of optimizers, schedules and clipping, and what an optimizer of one's own is written in
// (CustomOptimizer, Update, Expr).

#include "optim/clip.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "optim/update.h"
