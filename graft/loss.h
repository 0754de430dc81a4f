#pragma once

// Losses, and what a loss of one's own is written in (custom_loss, Expr).

#include "autograd/joint_loss.h"
#include "autograd/loss.h"
#include "core/ops/expr.h"
