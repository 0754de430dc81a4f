#pragma once

// Data sets, transforms of images, and the loader that makes batches of them.

#include "data/byte_images.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/idx.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "data/resize.h"
#include "data/subset.h"
#include "data/tensor_dataset.h"
#include "data/transforms.h"
#include "train/data_spec.h"
