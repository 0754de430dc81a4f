#pragma once

// The training step as ONNX, for programs that train with another runtime.

#include "train/step_model.h"
