#pragma once

// ONNX files in and out.

#include "io/onnx.h"
