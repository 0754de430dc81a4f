#pragma once

// Tensors and other data, devices, and npy and npz files.

#include "core/device/device.h"
#include "core/tensor/datum.h"
#include "core/tensor/slices.h"
#include "core/tensor/tensor.h"
#include "io/npy.h"
#include "io/npz.h"
