#pragma once

// Inference.

#include "core/runtime/session.h"
#include "train/gradient_model.h"
