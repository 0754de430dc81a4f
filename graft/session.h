#pragma once

// Inference, and the threads that it may use.

#include "core/base/parallel.h"
#include "core/runtime/session.h"
#include "train/gradient_model.h"
