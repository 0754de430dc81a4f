#pragma once

// Ops of one's own: row, gradient and kernels, registered before the first use.

#include "autograd/gradient_check.h"
#include "core/base/parallel.h"
#include "core/ops/builder.h"
#include "core/ops/evaluate.h"
#include "core/ops/register_op.h"
